/* Mutants: mistakes that break the contract on purpose, so that tests show that they would notice
 * (cmake/mutants.cmake lists them, with the test that must find each).
 *
 *     if (LS_MUTANT(DEAF) && rank == 0)
 *         others--;
 *
 * is 0, so no code at all, but in objects that are compiled with LS_MUTANTS for these tests: there
 * the mistake is made where LOCKSTEP_MUTANT in the environment names it.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_MUTANT_H
#define LS_BASE_MUTANT_H

#ifdef LS_MUTANTS
#include <stdbool.h>
bool ls_mutant(const char *name); /* tests/support/mutant.c */
#define LS_MUTANT(name) ls_mutant(#name)
#else
#define LS_MUTANT(name) 0
#endif

#endif

/* Mutants: builds that break the contract on purpose, so that tests show that they would notice
 * (cmake/mutants.cmake lists them, with the test that must find each).
 *
 *     if (LS_MUTANT(DEAF) && rank == 0)
 *         others--;
 *
 * is 1 in a build with -DLS_MUTANT_DEAF=1, and 0, so no code at all, in every other build.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_BASE_MUTANT_H
#define LS_BASE_MUTANT_H

/* Where LS_MUTANT_<name> is defined as 1 the first line adds an argument, and 1 is the second one.
 */
#define LS_MUTANT_ARGUMENT_1                  ~, 1
#define LS_MUTANT_SECOND_(first, second, ...) second
#define LS_MUTANT_SECOND(...)                 LS_MUTANT_SECOND_(__VA_ARGS__, 0, 0)
#define LS_MUTANT_PASTE_(value)               LS_MUTANT_SECOND(LS_MUTANT_ARGUMENT_##value)
#define LS_MUTANT_PASTE(value)                LS_MUTANT_PASTE_(value)
#define LS_MUTANT(name)                       LS_MUTANT_PASTE(LS_MUTANT_##name)

#endif

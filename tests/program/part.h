/* Included in front of each file of tests that is a part of its folder's program
 * (cmake/tests.cmake): its main is called by that program's (tests/program/main.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_PROGRAM_PART_H
#define LS_TESTS_PROGRAM_PART_H

int LS_TEST_MAIN(void);
#define main LS_TEST_MAIN

#endif

/* A device for tests: the CPU, whose inner products see their input and their weights rounded to a
 * narrow type. Programs that use it are linked with --wrap=ls_plan_build (cmake/tests.cmake).
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_TESTS_NARROW_PRODUCT_H
#define LS_TESTS_NARROW_PRODUCT_H

#include "ir/dtype.h"

enum narrow {
    NARROW_NOT,    /* the CPU as it is */
    NARROW_VIEWED, /* the kernel asks the plan for a view of the weights and for an input converted
                    */
    NARROW_ROUNDED /* the kernel reads fp32 and rounds each number itself: the same arithmetic */
};

/* What plans that are made from now on use, and the type. */
void narrow_products(enum narrow how, enum ls_dtype type);

#endif

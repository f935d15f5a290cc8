/* What commands share that run a model over its data.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_API_MODEL_TEST_H
#define LS_API_MODEL_TEST_H

/* Whether the caller of the model `user` wants it to end what it does. */
int ls_model_stop_asked(void *user);

#endif

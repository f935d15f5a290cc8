/* What convolutions and pooling share; for the files import*.c alone.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_ONNX_IMPORT_WINDOWS_H
#define LS_ONNX_IMPORT_WINDOWS_H

#include "onnx/importer.h"

enum { LS_ONNX_PLACE_AXES = 3 };

/* By axis of places, the axes behind that of the channels. */
struct ls_onnx_window {
    int axes;
    int64_t kernel[LS_ONNX_PLACE_AXES], stride[LS_ONNX_PLACE_AXES], dilation[LS_ONNX_PLACE_AXES],
        before[LS_ONNX_PLACE_AXES], after[LS_ONNX_PLACE_AXES];
};

/* The input has 1 to 3 axes of places. */
int ls_import_check_planes(struct ls_importer *x, const struct ls_shape *in);
/* The window of the node at hand, whose number of axes is known, and whose kernel may be. */
int ls_import_read_window(struct ls_importer *x, const struct ls_shape *in,
                          struct ls_onnx_window *w);
/* A blob with more places, as the window's `before` and `after` say. `mode` is what the Pad layer
 * is told besides its axes. */
const char *ls_import_padded(struct ls_importer *x, const char *top, const struct ls_onnx_window *w,
                             const char *mode);
/* The input, with a Pad layer in front where the sides differ: then nothing is left to pad. */
const char *ls_import_pad_apart(struct ls_importer *x, const struct ls_onnx_value *in,
                                struct ls_onnx_window *w, const char *mode);
/* Fields of a convolution or a pooling. */
void ls_import_add_window(struct ls_text *text, const struct ls_onnx_window *w);

#endif

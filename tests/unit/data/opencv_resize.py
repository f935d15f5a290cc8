# The pictures of test_picture.c (resizing_without_antialiasing_is_opencvs) after cv2.resize with
# INTER_LINEAR, as Caffe's data layers call it: prints the C tables.
# Needs numpy and opencv-python-headless (4.13 wrote what is there). SPDX-License-Identifier: BSD-2-Clause
import cv2
import numpy as np

for n, (h, w, nh, nw) in enumerate([(11, 7, 5, 5), (9, 16, 4, 3), (4, 5, 7, 9)]):
    picture = np.array([[(y * 67 + x * 113 + y * x * 29) % 256 for x in range(w)]
                        for y in range(h)], np.uint8)
    out = cv2.resize(picture, (nw, nh), interpolation=cv2.INTER_LINEAR)
    print('{%d, %d, %d, %d, {%s}},' % (h, w, nh, nw, ', '.join(str(v) for v in out.flatten())))

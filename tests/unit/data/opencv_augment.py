# What OpenCV makes of the pictures and colours of test_resample.c and test_distort.c: prints their
# C tables. Needs numpy and opencv-python-headless. SPDX-License-Identifier: BSD-2-Clause
import cv2
import numpy as np

modes = ('LINEAR', 'AREA', 'NEAREST', 'CUBIC', 'LANCZOS4')
for h, w, nh, nw in [(11, 7, 5, 5), (9, 16, 4, 3), (4, 5, 7, 9)]:
    picture = np.array([[(y * 67 + x * 113 + y * x * 29) % 256 for x in range(w)]
                        for y in range(h)], np.uint8)
    for mode in modes:
        out = cv2.resize(picture, (nw, nh), interpolation=getattr(cv2, 'INTER_' + mode))
        print('{%d, %d, %d, %d, LS_FILTER_%s, {%s}},' %
              (h, w, nh, nw, mode, ', '.join(str(v) for v in out.flatten())))


def convert(x, factor, shift):
    y = x.astype(np.float64) * np.float64(factor) + np.float64(shift)
    return np.clip(np.rint(y), 0, 255).astype(np.uint8)


def in_hsv(picture, channel, factor, shift):
    hsv = cv2.cvtColor(picture, cv2.COLOR_BGR2HSV)
    hsv[..., channel] = convert(hsv[..., channel], factor, shift)
    return cv2.cvtColor(hsv, cv2.COLOR_HSV2BGR)


colours = np.array([[(i * 89 + c * 57 + i * c * 31) % 256 for c in range(3)]
                    for i in range(24)], np.uint8).reshape(1, 24, 3)
for name, out in [('brightness', convert(colours, 1, 17.25)), ('contrast', convert(colours, 1.375, 0)),
                  ('saturation', in_hsv(colours, 1, 0.625, 0)),
                  ('saturation', in_hsv(colours, 1, 1.5, 0)),
                  ('hue', in_hsv(colours, 0, 1, 13.0)), ('hue', in_hsv(colours, 0, 1, -17.0))]:
    print('/* %s */ {%s},' % (name, ', '.join(str(v) for v in out.flatten())))

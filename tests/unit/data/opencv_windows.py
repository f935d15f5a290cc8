# What Caffe's WindowData layer makes of the windows of test_windows.c, computed with OpenCV's resize
# and none of Lockstep's code: prints some numbers of each as C tables.
# Needs numpy and opencv-python-headless (4.13 wrote what is there). SPDX-License-Identifier: BSD-2-Clause
import cv2
import numpy as np

H, W, SIDE = 30, 44, 12
rgb = np.array([[[(y * 3 + x * 2 + c * 40 + 5) % 200 + 20 for c in range(3)] for x in range(W)]
                for y in range(H)], np.uint8)
picture = rgb[:, :, ::-1]


def nearest(x):  # as C's round()
    return int(np.floor(abs(x) + 0.5) * (1 if x >= 0 else -1))


def window(x1, y1, x2, y2, pad, square, mean):
    out = np.zeros((3, SIDE, SIDE), np.float32)
    size_w = size_h = SIDE
    pad_w = pad_h = 0
    if pad > 0 or square:
        scale = SIDE / (SIDE - 2 * pad)
        half_h, half_w = (y2 - y1 + 1) / 2, (x2 - x1 + 1) / 2
        cx, cy = x1 + half_w, y1 + half_h
        if square:
            half_h = half_w = max(half_h, half_w)
        x1, x2 = nearest(cx - half_w * scale), nearest(cx + half_w * scale)
        y1, y2 = nearest(cy - half_h * scale), nearest(cy + half_h * scale)
        whole_h, whole_w = y2 - y1 + 1, x2 - x1 + 1
        px1, py1 = max(0, -x1), max(0, -y1)
        px2, py2 = max(0, x2 - W + 1), max(0, y2 - H + 1)
        x1, x2, y1, y2 = x1 + px1, x2 - px2, y1 + py1, y2 - py2
        sx, sy = SIDE / whole_w, SIDE / whole_h
        size_w, size_h = nearest((x2 - x1 + 1) * sx), nearest((y2 - y1 + 1) * sy)
        pad_w, pad_h = nearest(px1 * sx), nearest(py1 * sy)
        size_w, size_h = min(size_w, SIDE - pad_w), min(size_h, SIDE - pad_h)
    part = cv2.resize(np.ascontiguousarray(picture[y1:y2 + 1, x1:x2 + 1]), (size_w, size_h),
                      interpolation=cv2.INTER_LINEAR)
    for c in range(3):
        out[c, pad_h:pad_h + size_h, pad_w:pad_w + size_w] = part[:, :, c] - np.float32(mean[c])
    return out


for (box, pad, square) in [((5, 4, 30, 20), 0, 0), ((5, 4, 30, 20), 0, 1), ((0, 0, 9, 25), 3, 0),
                           ((30, 2, 43, 29), 2, 0), ((2, 20, 40, 29), 2, 1), ((8, 8, 8, 8), 0, 0)]:
    out = window(*box, pad, square, (10, 20, 30.5)).flatten()
    print('{{%d, %d, %d, %d}, %d, %d, {%s}},' %
          (*box, pad, square, ', '.join('%g' % v for v in out[::7])))

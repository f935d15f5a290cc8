#!/bin/bash
# The tables of docs/caffe.md are what the sources say.
# SPDX-License-Identifier: BSD-2-Clause
set -u
exec "${LOCKSTEP_SOURCE:?}/tools/caffe_page.sh"

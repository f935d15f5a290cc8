/* Caffe's tools, with their flags and arguments.
 * SPDX-License-Identifier: BSD-2-Clause */
#ifndef LS_CLI_CAFFE_TOOLS_H
#define LS_CLI_CAFFE_TOOLS_H

#include "cli/options.h"

extern const struct ls_cli_command ls_cli_convert_imageset;
extern const struct ls_cli_command ls_cli_compute_image_mean;
extern const struct ls_cli_command ls_cli_extract_features;
extern const struct ls_cli_command ls_cli_upgrade_net_proto_text;
extern const struct ls_cli_command ls_cli_upgrade_net_proto_binary;
extern const struct ls_cli_command ls_cli_upgrade_solver_proto_text;
extern const struct ls_cli_command ls_cli_device_query;

#endif

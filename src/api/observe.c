/* The public interface: what a training tells, for other programs to show.
 * SPDX-License-Identifier: BSD-2-Clause */
#include "api/api.h"
#include "base/text.h"
#include "observe/metrics.h"
#include "observe/tensorboard.h"

int lockstep_tensorboard_new(const char *folder, struct lockstep_tensorboard **board,
                             struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    *board = NULL;
    LS_TRY(ls_api_require(folder, "folder", inner));
    return ls_tensorboard_new(folder, NULL, board, inner);
}

int lockstep_tensorboard_event(struct lockstep_tensorboard *board,
                               const struct lockstep_event *event, struct lockstep_error *error)
{
    LS_OWN_MODE;
    return ls_tensorboard_event(board, event, ls_api_error(error));
}

int lockstep_tensorboard_flush(struct lockstep_tensorboard *board, struct lockstep_error *error)
{
    return ls_tensorboard_flush(board, ls_api_error(error));
}

void lockstep_tensorboard_free(struct lockstep_tensorboard *board)
{
    ls_tensorboard_free(board);
}

void lockstep_number_text(double value, char *text)
{
    ls_format_number(text, value);
}

int lockstep_metrics_new(const char *path, struct lockstep_metrics **metrics,
                         struct lockstep_error *error)
{
    struct ls_error *inner = ls_api_error(error);
    *metrics = NULL;
    LS_TRY(ls_api_require(path, "path", inner));
    return ls_metrics_new(path, NULL, metrics, inner);
}

int lockstep_metrics_event(struct lockstep_metrics *metrics, const struct lockstep_event *event,
                           struct lockstep_error *error)
{
    return ls_metrics_event(metrics, event, ls_api_error(error));
}

int lockstep_metrics_flush(struct lockstep_metrics *metrics, struct lockstep_error *error)
{
    return ls_metrics_flush(metrics, ls_api_error(error));
}

int lockstep_metrics_end(struct lockstep_metrics *metrics, int code, struct lockstep_error *error)
{
    return ls_metrics_end(metrics, code, ls_api_error(error));
}

void lockstep_metrics_free(struct lockstep_metrics *metrics)
{
    ls_metrics_free(metrics);
}

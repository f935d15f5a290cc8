/* Time by layer, from what `lockstep time --json` wrote. See report/page.h.
 * SPDX-License-Identifier: BSD-2-Clause */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_tree.h"
#include "report/html.h"
#include "report/page.h"

static double milliseconds(const struct ls_json_tree *tree, const struct ls_json_node *layer,
                           const char *const *parts)
{
    double sum = 0;
    for (; *parts != NULL; parts++) {
        const struct ls_json_node *ms = ls_json_find(tree, ls_json_find(tree, layer, *parts), "ms");
        if (ms != NULL && ms->kind == LS_JSON_NUMBER)
            sum += ms->number;
        else if (ms != NULL && ms->kind == LS_JSON_INTEGER)
            sum += (double)ms->integer;
    }
    return isfinite(sum) && sum > 0 ? sum : 0;
}

static const char *const forward[] = {"forward", "forward_again", NULL};
static const char *const backward[] = {"backward_data", "backward_weights", "reduction", "update",
                                       NULL};

static void put_layer(struct ls_text *out, const struct ls_json_tree *tree,
                      const struct ls_json_node *layer, double largest)
{
    const struct ls_json_node *name = ls_json_find(tree, layer, "name"),
                              *type = ls_json_find(tree, layer, "type");
    const double there = milliseconds(tree, layer, forward),
                 back = milliseconds(tree, layer, backward);
    if (name == NULL || name->kind != LS_JSON_STRING || there + back <= 0)
        return;
    ls_text_add(out, "<tr><td>");
    ls_html_text(out, ls_json_text(tree, name));
    ls_text_add(out, "</td><td>");
    if (type != NULL && type->kind == LS_JSON_STRING)
        ls_html_text(out, ls_json_text(tree, type));
    ls_text_format(out,
                   "</td><td class=\"n\">%.3g</td><td class=\"n\">%.3g</td><td class=\"b\">"
                   "<span class=\"bar\" style=\"width:%.0fpx\"></span>"
                   "<span class=\"bar b\" style=\"width:%.0fpx\"></span></td></tr>\n",
                   there, back, there / largest * 240, back / largest * 240);
}

int ls_page_times(const struct ls_page *page, struct ls_error *error)
{
    struct ls_json_tree tree = {0};
    double largest = 0;
    if (page->options->times == NULL)
        return 0;
    int status = ls_json_tree_read("times", page->options->times, strlen(page->options->times),
                                   LOCKSTEP_DATA, &tree, error);
    const struct ls_json_node *layers =
        status == 0 ? ls_json_find(&tree, &tree.nodes[0], "layers") : NULL;
    if (status == 0 && (layers == NULL || layers->kind != LS_JSON_ARRAY))
        status = ls_fail(error, LOCKSTEP_DATA, "times", "it is what 'lockstep time --json' writes",
                         "there are no layers in it");
    if (status != 0) {
        ls_json_tree_free(&tree);
        return status;
    }
    for (const struct ls_json_node *layer = ls_json_first(&tree, layers); layer != NULL;
         layer = ls_json_next(&tree, layer))
        largest = fmax(largest,
                       milliseconds(&tree, layer, forward) + milliseconds(&tree, layer, backward));
    ls_text_add(page->out, "<section><h2>Time by layer</h2>\n<div class=\"scroll\" tabindex=\"0\">"
                           "<table><tr><th>layer</th><th>type</th><th class=\"n\">forward, ms</th>"
                           "<th class=\"n\">backward, ms</th><th></th></tr>\n");
    for (const struct ls_json_node *layer = ls_json_first(&tree, layers); layer != NULL;
         layer = ls_json_next(&tree, layer))
        put_layer(page->out, &tree, layer, largest);
    ls_text_add(page->out, "</table></div></section>\n");
    ls_json_tree_free(&tree);
    return 0;
}

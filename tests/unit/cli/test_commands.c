/* All commands except train, from their arguments to their output, on a fake library.
 *
 * SPDX-License-Identifier: BSD-2-Clause */
#include "program.h"

#include <sys/wait.h>

/* ---- The other commands ---- */

static void test_test(void **state)
{
    (void)state;
    assert_int_equal(RUN("test", "--model", "m.prototxt", "--weights", "w", "--workers", "2",
                         "--level", "-1", "--stage", "a", "--stage", "b", "--iterations", "50"),
                     0);
    assert_string_equal(fake.calls, "model(m.prototxt|w|2|-1|50|a|b) ");
    assert_string_equal(out, "    Test net output #0: accuracy = 0.75\n"
                             "    Test net output #1: loss = 0.5 (* 2 = 1 loss)\n"
                             "Tested 10000 samples.\n");
    /* A loss that is not finite ends with its status; the figures are printed all the same. */
    fake_reset();
    fake.test_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w"), LOCKSTEP_DIVERGED);
    assert_non_null(strstr(out, "Test net output #1: loss = 0.5"));
    assert_non_null(strstr(out, "Tested 10000 samples."));
    assert_int_equal(strncmp(messages, "lockstep: net.prototxt:1:1: wrong", 33), 0);
    fake_reset();
    fake.test_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("test", "--model", "m", "--weights", "w"), LOCKSTEP_DATA);
    assert_string_equal(out, "");
}

static void test_verify(void **state)
{
    (void)state;
    static const struct lockstep_event events[] = {
        {.kind = LOCKSTEP_EVENT_NOTICE, .text = "done", .samples = 30, .iteration_end = 60},
        {.kind = LOCKSTEP_EVENT_NOTICE, .text = "done", .samples = 60, .iteration_end = 60},
        {.kind = LOCKSTEP_EVENT_NOTICE, .text = "2"}};
    fake.events = events;
    fake.event_count = 3;
    assert_int_equal(RUN("verify", "--solver", "s", "--workers", "1,2,8", "--iterations", "20"), 0);
    assert_string_equal(fake.calls, "load(s) verify(-|-|1w2w8w1rs|0|0|20) ");
    assert_int_equal(strncmp(out, "60/60 updates  100%", 19), 0);
    assert_non_null(strstr(out, "2\n\n     time  SHA-256 of the last snapshot's tensors"));
    assert_non_null(strstr(out, "    1.5 s  abc "));
    assert_non_null(strstr(out, "  2 workers\nVerified: 3 trainings of 20 updates compute the same "
                                "bytes.\n"));
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s"), 0);
    assert_string_equal(fake.calls, "load(s) verify(-|-|1w2w3w1rs|0|0|-1) ");
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s", "--ranks", "1,3", "--balance", "dynamic,static",
                         "--memory", "full,least,1KiB", "--resume", "random:4", "--isa", "avx2"),
                     0);
    assert_string_equal(fake.calls, "load(s) verify(avx2|-|1w2w3w1r3rds|0|18446744073709551615|1024"
                                    "|4|-1) ");
    fake_reset();
    assert_int_equal(RUN("verify", "--solver", "s", "--resume", "random"), 0);
    assert_string_equal(fake.calls, "load(s) verify(-|-|1w2w3w1rs|0|2|-1) ");
    static const char *const wrong[][2] = {
        {"--ranks", "0"},        {"--ranks", "1,"},         {"--balance", ""},
        {"--balance", "random"}, {"--memory", "none"},      {"--memory", "full,much"},
        {"--resume", "auto"},    {"--resume", "random:0"},  {"--resume", "random:1.5"},
        {"--resume", "random:"}, {"--resume", "randomly"},  {"--isa", ""},
        {"--isa", "avx2,,avx"},  {"--balance", "static,,"}, {"--memory", ","}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (RUN("verify", "--solver", "s", wrong[i][0], wrong[i][1]) != LOCKSTEP_USAGE ||
            strstr(messages, wrong[i][0]) == NULL)
            fail_msg("%s '%s': %s", wrong[i][0], wrong[i][1], messages);
}

static void test_replay(void **state)
{
    (void)state;
    assert_int_equal(RUN("replay", "--solver", "s", "--from", "f", "--to", "3"), 0);
    assert_string_equal(fake.calls, "load(s) create(0|-|-|f|-) ");
    assert_string_equal(out, "Iteration 0: weights 0000000000000000\n"
                             "Iteration 2: weights 000000000000000e\n"
                             "Iteration 3: weights 0000000000000015\n"
                             "Replayed: iterations 0 to 3; nothing was compared.\n");
    for (int64_t from = 0; from <= 3; from += 3) { /* at the beginning, and at the end */
        fake_reset();
        fake.hash_status = LOCKSTEP_RESOURCE;
        fake.hash_from = from;
        assert_int_equal(RUN("replay", "--solver", "s", "--from", "f", "--to", "3"),
                         LOCKSTEP_RESOURCE);
        assert_string_equal(messages, "lockstep: net.prototxt:1:1: wrong. hint: right\n"
                                      "lockstep: and more\n");
    }
    fake_reset();
    expect_usage(RUN("replay", "--solver", "s", "--to", "3"),
                 "lockstep: replay: --from FILE is missing\n");
    expect_usage(RUN("replay", "--solver", "s", "--from", "f", "--to", "3", "--audit", "2"),
                 "lockstep: --audit: '2' is no number from 0 to 1\n");
}

static void test_data_tools(void **state)
{
    (void)state;
    assert_int_equal(RUN("convert", "--backend", "CIFAR", "--source", "a", "--source", "b",
                         "--shuffle", "--seed", "7", "--split", "train:0.9", "out"),
                     0);
    assert_string_equal(fake.calls, "convert(CIFAR|-|-|0|0|0|1|7|train:0.9|a|b|out) ");
    assert_string_equal(out, "Wrote 60000 records to out\n");
    fake_reset();
    assert_int_equal(RUN("mean", "--backend", "IMAGES", "--source", "list", "--root-folder", "r/",
                         "--resize-height", "32", "--resize-width", "64", "--gray", "--", "-m"),
                     0);
    assert_string_equal(fake.calls, "mean(IMAGES|-|r/|32|64|1|0|0|-|list|-m) ");
    assert_string_equal(out, "Wrote the mean to -m\nmean_value channel [0]: 104.5\n"
                             "mean_value channel [1]: 117\n");
}

static void test_tokenize(void **state)
{
    (void)state;
    assert_int_equal(RUN("tokenize", "--tokenizer", "t", "--split", "0.9", "-o", "o.bin",
                         "--documents", "lines", "--separator", "<s>", "--special", "a", "-"),
                     0);
    assert_string_equal(fake.calls, "tokenize(t|o.bin|-|lines|<s>|-|0.9|0|1|0|0|a|-) ");
    assert_non_null(strstr(out, "2 lines, 100 B, 90 characters\n40 tokens: 2.5 bytes each, 30 of "
                                "1000 ids occur, 1 unknown\n"));
    assert_non_null(strstr(out, "Wrote 36 tokens to train with and 4 to test with\n"
                                "ids are of type U16\n"));
    fake_reset();
    assert_int_equal(
        RUN("tokenize", "--tokenizer", "t", "--pairs", "--max-length", "8", "-o", "p", "a"), 0);
    assert_string_equal(fake.calls, "tokenize(t|p|-|-|-|-|0|8|0|1|0|a) ");
    assert_non_null(strstr(out, "1 were cut to 8 tokens\nWrote p (_ids, _segments, _mask)\n"));
    fake_reset();
    assert_int_equal(RUN("tokenize", "--tokenizer", "t", "--decode", "--format", "npy", "x"), 0);
    assert_string_equal(fake.calls, "tokenize(t|-|npy|-|-|-|0|0|0|0|1|x) ");
    assert_string_equal(out, ""); /* which is the text's */
    fake_reset();
    assert_int_equal(RUN("tokenize", "--tokenizer", "t", "--bytes", "b.npy"), 0);
    assert_string_equal(out, "Wrote the bytes of 1000 ids to b.npy\n");
    fake_reset();
    fake.convert_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("tokenize", "--tokenizer", "t", "--count", "a"), LOCKSTEP_DATA);
    fake_reset();
    assert_int_equal(RUN("tokenize", "a"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "tokenize: --tokenizer PATH is missing"));
    assert_int_equal(RUN("tokenize", "--tokenizer", "t", "a"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "nothing is to be written"));
    assert_string_equal(fake.calls, "");
}

static void test_list(void **state)
{
    (void)state;
    assert_int_equal(RUN("list", "p"), LOCKSTEP_WEIGHTS); /* one is damaged */
    assert_string_equal(fake.calls, "list(p) ");
    assert_non_null(strstr(out, "       20  "));
    assert_non_null(strstr(out, "0.75  BEST p_iter_20.safetensors (and caffemodel)\n"));
    assert_non_null(strstr(out, "DAMAGED p_iter_40.safetensors: is? short\n2 snapshots,"));
    fake_reset();
    assert_int_equal(RUN("list", "--json", "p", "q"), LOCKSTEP_WEIGHTS);
    assert_string_equal(fake.calls, "list(p) list(q) ");
    assert_non_null(strstr(out, "\"best_score_before\": 0.75, \"best\": true"));
    assert_non_null(strstr(out, "\"whole\": false, \"problem\": \"is\\u001b short\"}"));
    fake_reset();
    assert_int_equal(RUN("list"), LOCKSTEP_USAGE);
}

static void test_show(void **state)
{
    (void)state;
    assert_int_equal(RUN("show", "a", "b"), 0);
    assert_string_equal(fake.calls, "show(a|-1) show(b|-1) ");
    assert_ptr_equal(strstr(out, "a: a database\n  records: 2\n  classes: cat ... (2 lines, 7 B; "
                                 "--full shows them)\n  tensor"),
                     out);
    assert_non_null(strstr(out, "\n  conv.weight            3x2            F32         0      0.5 "
                                "       0        0  1 NOT FINITE\n"));
    assert_non_null(
        strstr(out, "      1  k?                       image 1x2x2 U8\n\nb: a database"));
    fake_reset();
    assert_int_equal(RUN("show", "--full", "--records", "3", "--draw", "a"), 0);
    assert_string_equal(fake.calls, "show(a|3) ");
    assert_non_null(strstr(out, "  classes: cat\n    dog\n"));
    assert_non_null(strstr(out, "\n#1\nla"));
    fake_reset();
    fake.convert_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("show", "--json", "a"), LOCKSTEP_DATA);
    assert_ptr_equal(strstr(out, "[{\"file\": \"a\", \"kind\": \"lmdb\""), out);
    assert_non_null(
        strstr(out, "{\"tensor\": \"conv.weight\", \"type\": \"F32\", \"shape\": [3, 2]"));
    assert_non_null(
        strstr(out, "\"text\": \"image 1x2x2 U8\", \"label\": 7}], \"problem\": \"net"));
    fake_reset();
    assert_int_equal(RUN("show"), LOCKSTEP_USAGE);
}

static void test_prune(void **state)
{
    (void)state;
    assert_int_equal(RUN("prune", "--weights", "w", "--sparsity", "0.25", "-o", "m"), 0);
    assert_string_equal(fake.calls, "prune(w|m|0.25|0) ");
    assert_non_null(strstr(out, "conv.weight "));
    assert_non_null(strstr(out, " 300 weights,           75 masked (25.00 %)\n"));
    assert_non_null(strstr(out, "Wrote masks to m: 100 of 400 weights stay zero (25.00 %)\n"));
    fake_reset();
    assert_int_equal(RUN("prune", "--weights", "w", "--sparsity", "0", "--output", "m", "--scope",
                         "global", "--layers", "conv*", "--layers", "fc"),
                     0);
    assert_string_equal(fake.calls, "prune(w|m|0|1|conv*|fc) ");
    fake_reset();
    fake.convert_status = LOCKSTEP_WEIGHTS;
    assert_int_equal(RUN("prune", "--weights", "w", "--sparsity", "1", "-o", "m"),
                     LOCKSTEP_WEIGHTS);
    fake_reset();
    assert_int_equal(RUN("prune", "--weights", "w", "-o", "m"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "prune: --weights, --sparsity and -o are needed"));
    assert_int_equal(RUN("prune", "--weights", "w", "--sparsity", "1", "-o", "m", "--scope", "net"),
                     LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "--scope is layer or global, not 'net'"));
    assert_string_equal(fake.calls, "");
}

static void test_export(void **state)
{
    (void)state;
    assert_int_equal(RUN("export", "--onnx", "--model", "m", "--weights", "w", "-o", "x"), 0);
    assert_non_null(strstr(fake.calls, "export_onnx(x|0|0|0|0) "));
    assert_string_equal(out, "Wrote the model to x\n");
    assert_non_null(strstr(messages, "lockstep: a line\n"));
    fake_reset();
    assert_int_equal(RUN("export", "--onnx", "--model", "m", "--weights", "w", "--output", "x",
                         "--opset", "13", "--batch", "5", "--external", "--with-preprocessing"),
                     0);
    assert_non_null(strstr(fake.calls, "export_onnx(x|13|5|1|1) "));
    fake_reset();
    fake.convert_status = LOCKSTEP_DEFINITION;
    assert_int_equal(
        RUN("export", "--onnx", "--model", "m", "--weights", "w", "-o", "x", "--batch", "dynamic"),
        LOCKSTEP_DEFINITION);
    assert_string_equal(out, "");
    fake_reset();
    assert_int_equal(RUN("export", "--model", "m", "--weights", "w", "-o", "x"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "export: --onnx is missing"));
    assert_int_equal(RUN("export", "--onnx", "--model", "m", "-o", "x"), LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "export: --model, --weights and -o are needed"));
    assert_int_equal(
        RUN("export", "--onnx", "--model", "m", "--weights", "w", "-o", "x", "--batch", "1.5"),
        LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "--batch is a number of samples, or dynamic, not '1.5'"));
    assert_string_equal(fake.calls, "");
}

static void test_import(void **state)
{
    (void)state;
    assert_int_equal(RUN("import", "m.onnx"), 0);
    assert_string_equal(fake.calls, "import(m.onnx|imported|-|0) ");
    assert_string_equal(out, "Wrote a file\n");
    fake_reset();
    fake.convert_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("import", "-o", "net", "--loss", "softmax", "--solver", "--shape", "x=1,2",
                         "--shape", "y=3", "m.onnx"),
                     LOCKSTEP_DEFINITION);
    assert_string_equal(fake.calls, "import(m.onnx|net|softmax|1|x=1,2|y=3) ");
    fake_reset();
    assert_int_equal(RUN("import"), LOCKSTEP_USAGE);
    assert_string_equal(fake.calls, "");
}

static void test_convert_weights(void **state)
{
    (void)state;
    assert_int_equal(RUN("convert-weights", "a.caffemodel", "b.h5"), 0);
    assert_string_equal(fake.calls, "convert_weights(a.caffemodel|b.h5) ");
    assert_string_equal(out, "Wrote the weights to b.h5\n");
    assert_string_equal(messages, "lockstep: a line\n");
    fake_reset();
    assert_int_equal(RUN("convert-weights", "--map", "gpt2", "a", "b"), 0);
    assert_string_equal(fake.calls, "convert_weight_names(a|b|gpt2) ");
    fake_reset();
    assert_int_equal(RUN("convert-weights", "--model", "m", "a", "b"), 0);
    assert_non_null(strstr(fake.calls, "save(b) "));
    fake_reset();
    fake.convert_status = LOCKSTEP_WEIGHTS;
    assert_int_equal(RUN("convert-weights", "a", "b"), LOCKSTEP_WEIGHTS);
    assert_string_equal(out, "");
    fake_reset();
    ls_test_write_text(ls_test_path("same.safetensors"), "weights");
    assert_int_equal(RUN("convert-weights", ls_test_path("same.safetensors"),
                         ls_test_path("./same.safetensors")),
                     LOCKSTEP_USAGE);
    assert_string_equal(fake.calls, "");
    assert_non_null(strstr(messages, "INPUT and OUTPUT are the same file"));
    expect_usage(
        RUN("convert-weights", "a"),
        "lockstep: convert-weights: too few arguments; INPUT and OUTPUT (.caffemodel, .h5 or "
        ".safetensors) must be given. hint: lockstep convert-weights [OPTIONS] INPUT "
        "OUTPUT\n");
}

static void test_output_fails(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        ls_test_skip("there is no /dev/full");
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char *argv[] = {(char *)(uintptr_t) "lockstep", (char *)(uintptr_t) "--help"};
        if (freopen("/dev/full", "w", stdout) == NULL || freopen("/dev/null", "w", stderr) == NULL)
            _exit(99);
        _exit(ls_cli_main(2, argv));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(WEXITSTATUS(status), LOCKSTEP_RESOURCE);
}

static void test_plan(void **state)
{
    (void)state;
    assert_int_equal(RUN("plan", "--solver", "s.prototxt", "--workers", "2"), 0);
    assert_non_null(strstr(fake.calls, "plan(-|2|0)"));
    assert_non_null(strstr(out, "jit:best"));
    assert_non_null(strstr(out, "sync point of conv1"));
    assert_non_null(strstr(out, "12.5 % more work"));
    const char *chain = strstr(out, "-- chain: 2 steps together, 32 channels at a time --\nnorm ");
    assert_non_null(chain);
    chain = strstr(chain, "\nsum ");
    assert_non_null(chain);
    assert_int_equal(strncmp(strchr(chain + 1, '\n'), "\n-- end of the chain --\nip ", 27), 0);
    assert_non_null(strstr(out, "9 steps in 2 segments, 1 chain, 1 reorder;"));
    assert_non_null(strstr(out,
                           "\nWeights: 30 learned; 60 fixed of conv1; 10 masked (zero) of conv1; "
                           "the backward pass ends at conv1\n"));
    assert_non_null(strstr(out, "  gathered\n"));
    assert_non_null(strstr(out, "\nrecord factor: the gradient of these weights is a product"));
    assert_non_null(strstr(out, "warning: lrn backward of layer 'conv1' (train) has only a slow"));
    assert_non_null(strstr(out, "7.0 MiB"));
    assert_null(strstr(out, "Largest batch"));
    assert_int_equal(RUN("plan", "--model", "n.prototxt", "--memory", "1.5GiB"), 0);
    assert_non_null(strstr(fake.calls, "plan(n.prototxt|0|1610612736)"));
    assert_non_null(strstr(out, "training (micro-batches of 8): 208\n"));
    assert_non_null(strstr(out, "test (micro-batches of 1): any"));
    assert_int_equal(RUN("plan", "--model", "n.prototxt", "--json"), 0);
    assert_non_null(strstr(out, "\"implementation\": \"jit:best\""));
    assert_non_null(strstr(out, "\"chain\": 2, \"channels\": 32"));
    assert_int_equal(RUN("plan"), 2);
    assert_int_equal(RUN("plan", "--model", "n", "--solver", "s"), 2);
    assert_int_equal(RUN("plan", "--model", "n", "--set", "base_lr=1"), 2);
    assert_int_equal(RUN("plan", "--solver", "s", "--stage", "x"), 2);
    fake.create_status = LOCKSTEP_RESOURCE;
    assert_int_equal(RUN("plan", "--solver", "s"), LOCKSTEP_RESOURCE);
}

static void test_plan_ranks(void **state)
{
    (void)state;
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2,16", "--link", "1Gbps,100us",
                         "--workers", "2", "--iterations", "3"),
                     0);
    assert_non_null(strstr(fake.calls, "scaling(2|16|2|1.25e+08|0.0001|1e-06|0|3)"));
    assert_non_null(strstr(out, "links of 1 Gbit/s, 20 us, and 1 us a message"));
    assert_non_null(strstr(out, "80.0 %    40.000"));
    assert_non_null(strstr(out, "16 ranks: 8 of them have no micro-batch. micro_batch: 2"));
    assert_non_null(strstr(out, "that of 4 ranks, 25.000 ms"));
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "1", "--compute", "1.5s"), 0);
    assert_non_null(strstr(fake.calls, "scaling(1|0|1.25e+09|2e-05|1e-06|1.5|0)"));
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2,16", "--json"), 0);
    assert_non_null(strstr(out, "\"wait_sums\": 0.01"));
    assert_non_null(strstr(out, "\"ranks\": 16"));
    static const char *const wrong[][2] = {
        {"--ranks", "0"},    {"--ranks", "1,"},     {"--ranks", "65537"},
        {"--ranks", "two"},  {"--ranks", "1 2"},    {"--link", "10"},
        {"--link", "0Gbps"}, {"--link", "1Gbps,5"}, {"--link", "1Gbps,1us,1us,1us"},
        {"--compute", "3"},  {"--compute", "0s"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2", wrong[i][0], wrong[i][1]), 2);
    assert_int_equal(RUN("plan", "--model", "n", "--ranks", "2"), 2);
    assert_int_equal(RUN("plan", "--solver", "s", "--link", "1Gbps"), 2);
    fake.create_status = LOCKSTEP_DATA;
    assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2"), LOCKSTEP_DATA);
}

/* How links may be written. */
static void test_links(void **state)
{
    (void)state;
    static const struct {
        const char *text, *seen;
    } good[] = {{"10Gbps", "|1.25e+09|2e-05|1e-06|"},
                {"10 Gbit/s,5us", "|1.25e+09|5e-06|1e-06|"},
                {"100Mbit,1.5ms,800ns", "|1.25e+07|0.0015|8e-07|"},
                {"1.25GB/s,0s,0us", "|1.25e+09|0|0|"},
                {"8kbps", "|1000|2e-05|1e-06|"},
                {"64bit/s", "|8|2e-05|1e-06|"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(RUN("plan", "--solver", "s", "--ranks", "2", "--link", good[i].text), 0);
        assert_non_null(strstr(fake.calls, good[i].seen));
    }
}

static void test_time(void **state)
{
    (void)state;
    assert_int_equal(RUN("time", "--solver", "s", "--workers", "2", "--iterations", "4"), 0);
    assert_non_null(strstr(fake.calls, "time(2|4|0)"));
    assert_non_null(strstr(out, "6400 samples/s"));
    assert_non_null(strstr(out, "no steps of its own"));
    assert_non_null(strstr(out, "60.0 %")); /* 0.3 GFLOP in 5 ms */
    assert_non_null(strstr(out, "reaches 50.0 % of the limit"));
    assert_null(strstr(out, "not quiet"));
    assert_int_equal(RUN("time", "--solver", "s", "--json"), 0);
    assert_non_null(strstr(out, "\"share_of_peak\": 0.5"));
    assert_non_null(strstr(out, "\"name\": \"conv1\""));
    assert_int_equal(RUN("time"), LOCKSTEP_USAGE);
    assert_int_equal(RUN("time", "--solver", "s", "--iterations", "0"), LOCKSTEP_USAGE);
    fake.create_status = LOCKSTEP_DIVERGED;
    assert_int_equal(RUN("time", "--solver", "s"), LOCKSTEP_DIVERGED);
}

static void test_tune(void **state)
{
    (void)state;
    assert_int_equal(RUN("tune", "--solver", "s", "--workers", "1,2", "--batch", "64",
                         "--micro-batch", "4,8,16,32,100", "--seconds", "0.5"),
                     0);
    assert_non_null(strstr(fake.calls, "tune(0.5|"));
    assert_non_null(strstr(fake.calls, ",64,16|"));
    assert_null(strstr(fake.calls, ",64,100")); /* no larger than the batch */
    assert_non_null(strstr(out, "micro_batch 8 is enough: what is larger brings less"));
    assert_non_null(strstr(out, "cannot be: too large"));
    assert_null(strstr(out, "of best  spread     memory\n          32")); /* batch: not varied */
    assert_non_null(strstr(out, "Workers change nothing but the speed"));
    assert_int_equal(RUN("tune", "--solver", "s", "--workers", "1"), 0);
    assert_non_null(strstr(out, "Base: 1 worker, "));
    assert_int_equal(RUN("tune", "--solver", "s", "--workers", "2"), 0);
    assert_non_null(strstr(out, "Base: 2 workers, "));
    assert_int_equal(RUN("tune", "--solver", "s", "--json"), 0);
    assert_non_null(strstr(out, "\"reason\": \"too large\""));
    static const char *const bad[] = {"0", "x", "1,,2", ",", "1,", "4 5", "99999999999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(RUN("tune", "--solver", "s", "--micro-batch", bad[i]), LOCKSTEP_USAGE);
        assert_int_equal(RUN("tune", "--solver", "s", "--workers", bad[i]), LOCKSTEP_USAGE);
    }
    static const char *const bad_seconds[] = {"-1", "0", "nan", "inf", "0x1", "1s", "86401", ""};
    for (size_t i = 0; i < sizeof bad_seconds / sizeof *bad_seconds; i++)
        assert_int_equal(RUN("tune", "--solver", "s", "--seconds", bad_seconds[i]), LOCKSTEP_USAGE);
    assert_int_equal(RUN("tune"), LOCKSTEP_USAGE);
    fake.create_status = LOCKSTEP_DEFINITION;
    assert_int_equal(RUN("tune", "--solver", "s"), LOCKSTEP_DEFINITION);
}

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text, *bytes;
    } good[] = {{"600MiB", "|629145600)"}, {"600mib", "|629145600)"},
                {"600M", "|629145600)"},   {"512MB", "|512000000)"},
                {"1GiB", "|1073741824)"},  {"1.5 KiB", "|1536)"},
                {"1048576", "|1048576)"},  {"7B", "|7)"},
                {"2k", "|2048)"}};
    static const char *const bad[] = {"x",     "MiB",         "-1MiB", "0",     "0x10",
                                      "1e3",   "inf",         "nan",   "1MiBs", "1..2",
                                      "1,5MB", "99999999TiB", "0.1",   ".",     "1 1"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        fake_reset();
        assert_int_equal(RUN("plan", "--solver", "s", "--memory", good[i].text), 0);
        assert_non_null(strstr(fake.calls, good[i].bytes));
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(RUN("train", "--solver", "s", "--memory", bad[i]), LOCKSTEP_USAGE);
        assert_non_null(strstr(messages, "is not a size"));
    }
}

/* The fake library writes the letter behind the last one. */
static void test_generate(void **state)
{
    (void)state;
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "ab", "--length",
                         "4", "--greedy", "--top-k", "3", "--top-p", "0.5", "--seed", "7"),
                     0);
    assert_string_equal(out, "Abcdea\n");
    assert_string_equal(fake.calls, "generator(m|w|1|0|3|0.5|7|0) ");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "ab", "--length",
                         "9", "--stop", "e", "--no-prompt", "--temperature", "0.25"),
                     0);
    assert_string_equal(out, "cd\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--length", "3", "--ids"),
                     0);
    assert_string_equal(out, "0 1 2\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--length", "0", "--ids",
                         "--prompt", "3, 1 2"),
                     0);
    assert_string_equal(out, "3 1 2\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "a", "--length",
                         "3", "--samples", "2", "--stop", "d"),
                     0);
    assert_string_equal(out, "--- text 1\nAbc\n--- text 2\nAc\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--ids", "--prompt", "1 x"),
                     LOCKSTEP_USAGE);
    assert_string_equal(
        messages, "lockstep: generate: byte 3 of the prompt is no part of a number of a token\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--ids", "--prompt", "1",
                         "--stop", "1 2"),
                     LOCKSTEP_USAGE);
    assert_string_equal(
        messages, "lockstep: generate: --stop '1 2' is 2 numbers of tokens; it must be one\n");
}

/* What ends a text: several tokens, of which a part may come and not go on; the token of the
 * tokenizer. */
static void test_generate_ends(void **state)
{
    (void)state;
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "a", "--length",
                         "9", "--stop", "eb", "--stop", "dea"),
                     0);
    assert_string_equal(out, "Abc\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "a", "--length",
                         "5", "--stop", "eb", "--stop", "abz"),
                     0);
    assert_string_equal(out, "Abcdea\n"); /* what was held goes out in the end */
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "a", "--length",
                         "9", "--tokenizer", "t"),
                     0);
    assert_string_equal(out, "Abcd\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--prompt", "a", "--length",
                         "5", "--tokenizer", "t", "--ignore-end"),
                     0);
    assert_string_equal(out, "Abcdea\n");
    assert_int_equal(RUN("generate", "--model", "m", "--weights", "w", "--ids", "--tokenizer", "t"),
                     LOCKSTEP_USAGE);
    assert_non_null(strstr(messages, "--tokenizer or --ids, not both"));
}

/* Every command that has the option hands it to each call of the library that computes. */
static void the_device_reaches_the_library(void **state)
{
    (void)state;
    static const struct {
        const char *arguments[10];
        int calls;
    } rows[] = {
        {{"train", "--solver", "s"}, 1},
        {{"test", "--model", "m", "--weights", "w"}, 1},
        {{"predict", "--model", "m", "--weights", "w", "a.png"}, 1},
        {{"classify", "--model", "m", "--weights", "w", "a.png"}, 1},
        {{"generate", "--model", "m", "--weights", "w", "--prompt", "a"}, 1},
        {{"plan", "--solver", "s"}, 1},
        {{"plan", "--model", "m"}, 1},
        {{"plan", "--solver", "s", "--ranks", "2"}, 1},
        {{"time", "--solver", "s"}, 1},
        {{"tune", "--solver", "s"}, 2}, /* the plan of its first point, and the turns */
        {{"sweep", "--solver", "s", "--set", "a=1", "--dry-run"}, 1},
        {{"verify", "--solver", "s"}, 1},
        {{"replay", "--solver", "s", "--from", "f", "--to", "3"}, 1},
        {{"report", "log", "-o", "p", "--model", "m", "--weights", "w"}, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *arguments[13];
        int count = 0, calls = 0;
        for (; rows[i].arguments[count] != NULL; count++)
            arguments[count] = rows[i].arguments[count];
        arguments[count++] = "--device";
        arguments[count++] = "abacus";
        arguments[count] = NULL;
        fake_reset();
        assert_int_equal(run(arguments), 0);
        for (const char *at = fake.calls; (at = strstr(at, "device(abacus) ")) != NULL; at++)
            calls++;
        if (calls != rows[i].calls)
            fail_msg("%s: %s", arguments[0], fake.calls);
    }
    for (size_t c = 0; ls_cli_commands[c] != NULL; c++) { /* a row for each such command */
        const struct ls_cli_option *option = ls_cli_commands[c]->options;
        while (option->name != NULL && strcmp(option->name, "device") != 0)
            option++;
        bool there = option->name == NULL;
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
            there = there || strcmp(rows[i].arguments[0], ls_cli_commands[c]->name) == 0;
        if (!there)
            fail_msg("%s", ls_cli_commands[c]->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_test),
        TEST(test_verify),
        TEST(test_replay),
        TEST(test_data_tools),
        TEST(test_tokenize),
        TEST(test_list),
        TEST(test_show),
        TEST(test_prune),
        TEST(test_export),
        TEST(test_import),
        TEST(test_convert_weights),
        TEST(test_generate),
        TEST(test_generate_ends),
        TEST(test_plan),
        TEST(test_plan_ranks),
        TEST(test_links),
        TEST(test_time),
        TEST(test_tune),
        TEST(test_sizes),
        TEST(test_output_fails),
        TEST(the_device_reaches_the_library),
    };
    return cmocka_run_group_tests(tests, NULL, free_texts);
}

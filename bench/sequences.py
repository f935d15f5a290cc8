"""The benchmark's transformers, with layers beside those of networks.Network.

A sample is a row of tokens (T), a value behind an embedding (T, C).

SPDX-License-Identifier: BSD-2-Clause
"""

from network import Network


class Transformer(Network):
    """Layers over rows of tokens. `data` are whole numbers below `vocabulary`, or, without one, a
    picture. `masked`: a second and third input say which tokens count and of which segment they are."""

    def __init__(self, name, batch, shape, classes, vocabulary=0, masked=False, micro_batch=0):
        super().__init__(name, batch, shape, classes, micro_batch=micro_batch)
        self.vocabulary, self.masked = vocabulary, masked
        self.next_token = False  # the label of a position is the token behind it
        if masked:
            self.inputs += ["segment", "mask"]
            self.shapes["segment"] = self.shapes["mask"] = self.shape

    def embed(self, name, x, entries, outputs):
        return self.add("Embed", name, [x], [*self.shapes[x], outputs], input_dim=entries,
                        num_output=outputs)

    def positions(self, name, x):
        """Learned, a row for each token of x, added to it."""
        return self.add("Bias", name, [x], self.shapes[x], top=x, axis=1, num_axes=2)

    def layer_norm(self, name, x):
        return self.add("LayerNorm", name, [x], self.shapes[x], axis=-1)

    def linear(self, name, x, outputs):
        return self.add("InnerProduct", name, [x], [*self.shapes[x][:-1], outputs],
                        num_output=outputs, bias_term=True, axis=len(self.shapes[x]))

    def attention(self, name, qkv, heads, causal, mask=None):
        steps, channels = self.shapes[qkv]
        return self.add("Attention", name, [qkv] + ([mask] if mask else []),
                        [steps, channels // 3], num_heads=heads, causal=causal)

    def gelu(self, x, approximate):
        return self.add("GELU", x + "/gelu", [x], self.shapes[x], approximate=approximate)

    def tanh(self, x):
        return self.add("TanH", x + "/tanh", [x], self.shapes[x], top=x)

    def first(self, name, x):
        """The first token's row."""
        return self.add("First", name, [x], self.shapes[x][1:])

    def mean(self, name, x):
        """The mean of all tokens' rows."""
        return self.add("Mean", name, [x], self.shapes[x][1:])

    def patches(self, name, x):
        """A map (C, H, W) as a row of H W tokens."""
        channels, height, width = self.shapes[x]
        return self.add("Patches", name, [x], [height * width, channels])

    def language_model(self, x, tied):
        """The loss of the next tokens; its weights are those of the embedding `tied`."""
        self.next_token = True
        self.inputs.append("label")
        self.shapes["label"] = self.shape
        self.add("LinearSoftmaxLoss", "loss", [x, "label"], [], num_output=self.vocabulary, tied=tied)
        self.outputs.append(("loss", 1.0))

    def macs(self, layer):
        if layer.type == "Attention":
            steps, channels = layer.shape_out
            pairs = steps * (steps + 1) // 2 if layer.set["causal"] else steps * steps
            return 2 * pairs * channels
        if layer.type == "LinearSoftmaxLoss":
            steps, channels = layer.shape_in
            return steps * channels * self.vocabulary
        return super().macs(layer)


def perceptron(n, name, x, approximate):
    width = n.shapes[x][-1]
    return n.linear(name + "_out", n.gelu(n.linear(name + "_in", x, 4 * width), approximate), width)


def pre_norm(n, x, layers, heads, causal, approximate):
    """Blocks that normalise in front of their branches, as GPT-2's and ViT's do."""
    width = n.shapes[x][-1]
    for i in range(layers):
        name = f"h{i}"
        y = n.linear(name + "_qkv", n.layer_norm(name + "_ln1", x), 3 * width)
        y = n.linear(name + "_proj", n.attention(name + "_attn", y, heads, causal), width)
        x = n.sum(name + "_mid", x, y)
        y = perceptron(n, name + "_mlp", n.layer_norm(name + "_ln2", x), approximate)
        x = n.sum(name, x, y)
    return n.layer_norm("ln_f", x)


def gpt(name, batch, steps, layers, heads, width, vocabulary, micro_batch=0):
    n = Transformer(name, batch, (steps,), vocabulary, vocabulary, micro_batch=micro_batch)
    x = n.positions("wpe", n.embed("wte", "data", vocabulary, width))
    n.language_model(pre_norm(n, x, layers, heads, True, "TANH"), "wte")
    return n


def char_gpt():
    """nanoGPT's character model for a CPU: 4 layers, 4 heads, 128 wide, 64 characters."""
    return gpt("char_gpt", 12, 64, 4, 4, 128, 65, micro_batch=6)


def gpt2_64():
    """GPT-2 with 124 M parameters, rows of 64 tokens."""
    return gpt("gpt2_64", 4, 64, 12, 12, 768, 50257, micro_batch=2)


def gpt2_1024():
    """GPT-2 with 124 M parameters, rows of 1,024 tokens."""
    return gpt("gpt2_1024", 4, 1024, 12, 12, 768, 50257, micro_batch=2)


def vit_tiny():
    """ViT-tiny for CIFAR-10: patches of 4 x 4, 12 layers, 3 heads, 192 wide, mean of the tokens."""
    n = Transformer("vit_tiny", 64, (3, 32, 32), 10)
    x = n.positions("pos", n.patches("tokens", n.convolution("patch", "data", 192, 4, 4)))
    n.output(n.linear("head", n.mean("mean", pre_norm(n, x, 12, 3, False, "NONE")), 10))
    return n


def bert_mini():
    """BERT-mini over pairs of 128 tokens: 4 layers, 4 heads, 256 wide, two classes."""
    n = Transformer("bert_mini", 32, (128,), 2, 30522, masked=True)
    x = n.sum("words", n.embed("wte", "data", 30522, 256), n.embed("wse", "segment", 2, 256))
    x = n.layer_norm("ln", n.positions("wpe", x))
    for i in range(4):
        name = f"h{i}"
        y = n.attention(name + "_attn", n.linear(name + "_qkv", x, 768), 4, False, "mask")
        x = n.layer_norm(name + "_ln1", n.sum(name + "_mid", x, n.linear(name + "_proj", y, 256)))
        x = n.layer_norm(name + "_ln2", n.sum(name, x, perceptron(n, name + "_mlp", x, "NONE")))
    x = n.tanh(n.linear("pooler", n.first("first", x), 256))
    n.output(n.linear("classifier", x, 2))
    return n


ALL = (char_gpt, gpt2_64, gpt2_1024, vit_tiny, bert_mini)

"""GPT-2, BERT and ViT of the transformers package, and a network of torchvision's names, against the definitions of examples/.

    transformers.py LOCKSTEP FOLDER [KEPT]

Writes random weights of small networks with the package, lets Lockstep compute their scores with
--map, converts the weights there and back, and lets the package compute with what came back. Ends
with an error where scores differ by more than 1e-4 of the largest one. FOLDER is where files go; KEPT
gets what tests/compat/test_name_maps.c needs: definitions, weights in F16, inputs and scores.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.pop(0)  # this file has the package's name
import h5py
import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOLERANCE = 1e-4
SAMPLES, PLACES, WORDS = 3, 11, 31
KEPT = sys.argv[3] if len(sys.argv) > 3 else None


def shrink(text, numbers, repeat):
    """A definition with other extents: each whole number that is listed becomes another one."""
    text = re.sub(r"\b\d+\b", lambda found: str(numbers.get(int(found[0]), found[0])), text)
    return re.sub(r"repeat: \d+", "repeat: %d" % repeat, text)


def definition(folder, name, example, numbers, inputs, blob):
    """The example as a small net for tests: its Input layer reads arrays, and a file takes `blob`."""
    text = open(os.path.join(ROOT, "examples", example)).read()
    first, second = [found.start() for found in re.finditer(r"^layer ", text, re.M)][:2]
    tops = re.findall(r'top: "(\w+)"', text[first:second])
    layers = shrink(text[second:], numbers, 2)
    if KEPT is not None and name != "torchvision":
        shape = " ".join("dim: %d" % size for size in (1,) + inputs[tops[0]].shape[1:])
        open(os.path.join(KEPT, name + ".prototxt"), "w").write(
            'layer { name: "input" type: "Input" %s input_param { shape { %s } } }\n' % (
                " ".join('top: "%s"' % top for top in tops), shape) + layers)
    sources = ""
    for top in tops + ["number"]:
        path = os.path.join(folder, "%s_%s.npy" % (name, top))
        numpy.save(path, inputs[top].astype(numpy.float32))
        sources += '    source: "%s"\n' % path
    data = 'layer { name: "data" type: "Data" %s\n  data_param {\n    backend: NPY\n%s' % (
        " ".join('top: "%s"' % top for top in tops + ["number"]), sources)
    data += "    batch_size: %d\n  }\n}\n" % SAMPLES
    rows = os.path.join(folder, name + ".h5")
    output = 'layer { name: "rows" type: "HDF5Output" bottom: "%s" bottom: "number" ' % blob
    output += 'hdf5_output_param { file_name: "%s" } }\n' % rows
    path = os.path.join(folder, name + ".prototxt")
    open(path, "w").write(data + layers + output)
    return path, rows


def keep(name, weights, inputs, scores):
    """A line of numbers for each input, and one of the scores, beside the weights."""
    if KEPT is None:
        return
    shutil.copyfile(weights, os.path.join(KEPT, name + ".safetensors"))
    with open(os.path.join(KEPT, name + ".txt"), "w") as file:
        for values in list(inputs.values())[:-1] + [scores]:
            file.write(" ".join("%.9g" % value for value in values.reshape(-1)) + "\n")


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit("%s: %s" % (" ".join(words), done.stdout + done.stderr))


def compare(what, found, wanted):
    found = found.reshape(wanted.shape)
    difference = numpy.abs(found - wanted).max() / numpy.abs(wanted).max()
    print("%s: scores differ by %.1e of the largest" % (what, difference))
    if not difference <= TOLERANCE:
        sys.exit("that is more than %g" % TOLERANCE)


def check(lockstep, folder, name, model, scores, example, numbers, inputs):
    """Both directions, of one network."""
    model = model.eval()
    for parameter in model.parameters():  # also those that begin as zeros or ones
        torch.nn.init.normal_(parameter, 0.3 if parameter.dim() == 1 else 0.0, 0.2)
    wanted = scores(model)
    theirs = os.path.join(folder, name)
    model.save_pretrained(theirs)
    weights = os.path.join(theirs, "model.safetensors")
    net, rows = definition(folder, name, example, numbers, inputs, "logits")
    run(lockstep, "test", "--model", net, "--weights", weights, "--map", name)
    compare(name, h5py.File(rows)["data"][()], wanted)

    ours = os.path.join(folder, name + ".safetensors")
    run(lockstep, "convert-weights", "--map", name, weights, ours)
    run(lockstep, "test", "--model", net, "--weights", ours)
    compare(name + ", converted", h5py.File(rows)["data"][()], wanted)
    run(lockstep, "convert-weights", "--model", net, ours, ours + ".caffemodel")
    run(lockstep, "test", "--model", net, "--weights", ours + ".caffemodel")
    compare(name + ", as a caffemodel", h5py.File(rows)["data"][()], wanted)

    os.remove(weights)
    run(lockstep, "convert-weights", "--map", name, ours, weights)
    back = type(model).from_pretrained(theirs).eval()
    if not numpy.array_equal(scores(back), wanted):
        sys.exit("%s: what came back computes other scores" % name)
    print("%s, there and back: the same scores" % name)

    theirs += "_parts"
    model.half().save_pretrained(theirs, max_shard_size="4KB")
    run(lockstep, "test", "--model", net, "--map", name, "--weights",
        os.path.join(theirs, "model.safetensors.index.json"))
    half = type(model).from_pretrained(theirs, dtype=torch.float32).eval()
    compare(name + ", in F16 and several files", h5py.File(rows)["data"][()], scores(half))
    model.save_pretrained(theirs + "_half")
    keep(name, os.path.join(theirs + "_half", "model.safetensors"), inputs, scores(half))


class Block(torch.nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(out)
        self.conv2 = torch.nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(out)
        if stride > 1:
            self.downsample = torch.nn.Sequential(
                torch.nn.Conv2d(channels, out, 1, stride, bias=False), torch.nn.BatchNorm2d(out))

    def forward(self, x):
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet(torch.nn.Module):
    """A residual network whose modules are called as torchvision's."""

    def __init__(self, widths, classes):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, widths[0], 7, 2, 3, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(widths[0])
        self.maxpool = torch.nn.MaxPool2d(3, 2, 1)
        for i, width in enumerate(widths):
            before = widths[max(i - 1, 0)]
            setattr(self, "layer%d" % (i + 1), torch.nn.Sequential(
                Block(before, width, 1 if i == 0 else 2), Block(width, width, 1)))
        self.fc = torch.nn.Linear(widths[-1], classes)

    def forward(self, x):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def check_torchvision(lockstep, folder, pictures):
    """A network with batch norms; its names as torchvision gives them."""
    inputs = torch.tensor(pictures)
    model = ResNet((8, 12, 16, 20), 10)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.normal_(0, 0.3)
    with torch.no_grad():
        for _ in range(3):
            model(inputs)  # averages of batch norms
        wanted = model.eval()(inputs).numpy()
    weights = os.path.join(folder, "resnet.safetensors")
    back = os.path.join(folder, "resnet_back.safetensors")
    ours = os.path.join(folder, "resnet_ours.safetensors")
    save_file(model.state_dict(), weights)
    net, rows = definition(folder, "torchvision", "torchvision/resnet18_deploy.prototxt",
                           {64: 8, 128: 12, 256: 16, 512: 20, 1000: 10},
                           {"data": pictures, "number": numpy.arange(SAMPLES)}, "logits")
    run(lockstep, "test", "--model", net, "--weights", weights, "--map", "torchvision")
    compare("torchvision", h5py.File(rows)["data"][()], wanted)
    run(lockstep, "convert-weights", "--map", "torchvision", weights, ours)
    run(lockstep, "convert-weights", "--map", "torchvision", ours, back)
    again = ResNet((8, 12, 16, 20), 10).eval()
    again.load_state_dict(load_file(back))
    if not numpy.array_equal(again(inputs).detach().numpy(), wanted):
        sys.exit("torchvision: what came back computes other scores")
    print("torchvision, there and back: the same scores")


def main():
    lockstep, folder = sys.argv[1:3]
    torch.manual_seed(1)
    transformers.logging.set_verbosity_error()
    draw = numpy.random.default_rng(1)
    number = numpy.arange(SAMPLES)
    tokens = draw.integers(0, WORDS, (SAMPLES, PLACES))
    segments = (numpy.arange(PLACES) >= numpy.array([[4], [7], [11]])).astype(int)
    mask = (numpy.arange(PLACES) < numpy.array([[11], [6], [1]])).astype(int)
    pictures = numpy.round(draw.standard_normal((SAMPLES, 3, 32, 32)).astype("f4") * 2) / 2
    check_torchvision(lockstep, folder, draw.standard_normal((SAMPLES, 3, 64, 64)).astype("f4"))

    def scores_of(**inputs):
        given = {key: torch.tensor(value) for key, value in inputs.items()}
        return lambda model: model(**given).logits.detach().numpy()

    check(lockstep, folder, "gpt2",
          transformers.GPT2LMHeadModel(transformers.GPT2Config(
              vocab_size=WORDS, n_positions=16, n_embd=12, n_layer=2, n_head=3,
              bos_token_id=0, eos_token_id=0)),
          scores_of(input_ids=tokens), "gpt/gpt2_deploy.prototxt",
          {768: 12, 2304: 36, 3072: 48, 50257: WORDS, 1024: 16, 12: 3},
          {"tokens": tokens, "number": number})
    check(lockstep, folder, "bert",
          transformers.BertForSequenceClassification(transformers.BertConfig(
              vocab_size=WORDS, hidden_size=12, num_hidden_layers=2, num_attention_heads=2,
              intermediate_size=24, max_position_embeddings=16, num_labels=2)),
          scores_of(input_ids=tokens, token_type_ids=segments, attention_mask=mask),
          "bert/mini_deploy.prototxt",
          {256: 12, 768: 36, 1024: 24, 30522: WORDS, 512: 16, 4: 2},
          {"tokens": tokens, "segments": segments, "mask": mask, "number": number})
    check(lockstep, folder, "vit",
          transformers.ViTForImageClassification(transformers.ViTConfig(
              hidden_size=12, num_hidden_layers=2, num_attention_heads=3, intermediate_size=24,
              image_size=32, patch_size=4, num_labels=10)),
          scores_of(pixel_values=pictures), "vit/tiny_deploy.prototxt",
          {192: 12, 576: 36, 768: 24}, {"data": pictures, "number": number})


main()

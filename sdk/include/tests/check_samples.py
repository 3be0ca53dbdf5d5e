#!/usr/bin/env python3
"""check_samples.py --compiler CXX ROOT: the samples of code in the guides and in the comments of the public headers
compile.

A sample is a block that is indented by four columns and in which a line ends with ';', '{' or '}'. It is compiled
inside a function that has the names of the prelude below, or at file scope if it defines functions itself."""
import argparse
import glob
import os
import subprocess
import sys
import tempfile

GUIDES = ["docs/writing_a_backend.md", "docs/programs.md", "docs/interface.md", "docs/patterns.md", "docs/adding_an_op.md",
          "docs/npu.md"]

PRELUDE = """
#include <cmath>
#include <collet/collet.hpp>
#include <collet/command_list.hpp>
#include <collet/command_loops.hpp>
#include <collet/command_rows.hpp>
#include <collet/kernel_backend.hpp>
#include <collet/kernel_match.hpp>
#include <collet/kernel_quantized.hpp>
#include <collet/kernel_rows.hpp>
#include <collet/list_backend.hpp>
#include <collet/list_program.hpp>
#include <collet/memory_planner.hpp>
#include <collet/tiling.hpp>
using namespace collet::kernel;
using namespace collet::kernel::shape;
constexpr TypeSet f32{COLLET_TYPE_F32};
constexpr TypeSet all{COLLET_TYPE_F32, COLLET_TYPE_S32};
void run_add(Device&, const Op&);
void run_dot(Device&, const Op&);
void run_scale(Device&, const Op&);
Verdict takes_dot(const Op&);
uint64_t scratch_bytes(const Op&);
double cost_ns(const Op&);
template <class... T> void use(const T&...) {}
template <class T> void define(const T&) {}
struct AcmeDevice : Device {
  Memory allocate(uint64_t, uint64_t) override { return 1; }
  void free(Memory) noexcept override {}
  void write(Memory, uint64_t, const void*, uint64_t) override {}
  void read(Memory, uint64_t, void*, uint64_t) override {}
  void copy(Memory, uint64_t, Memory, uint64_t, uint64_t) override {}
};
struct Mine : AcmeDevice {
  void* at(const Array&) { return nullptr; }
  void submit(std::function<void()>) {}
};
extern collet::commands::Units& units;
extern const collet::commands::ListOptions list_options;
const char* text = "";
const char* const kScale = "";
const float* data = nullptr;
template <class T> void report(const T&) {}
"""
FUNCTION = """void sample_%d(const Op& op, Backend& backend, const collet_program* p) {
(void)op, (void)backend, (void)p;
#line %d "%s"
%s
}
"""


def blocks(text, margin):
    """(line number, block) of what is indented by four columns behind the margin."""
    block, first = [], 0
    for number, line in enumerate(text.splitlines() + [""], 1):
        body = line[len(margin):] if line.startswith(margin) else None
        if body is not None and body.startswith("    "):
            first = first if block else number
            block.append(body[4:])
        elif block and line.strip() == margin.strip():
            block.append("")
        elif block:
            yield first, "\n".join(block).rstrip()
            block = []
    if block:
        yield first, "\n".join(block).rstrip()


def is_code(block):
    if block.startswith("HloModule"):  # the text of a pattern
        return False
    return any(line.rstrip().endswith((";", "{", "}")) for line in block.splitlines())


def samples(root):
    for name in GUIDES:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            yield from ((name, *one) for one in blocks(file.read(), "") if is_code(one[1]))
    for path in sorted(glob.glob(os.path.join(root, "sdk/include/collet/*.h*"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for number, block in blocks(text, " *"):
            block = "\n".join(line[1:] if line.startswith(" ") else line for line in block.splitlines())
            if is_code(block):
                yield os.path.relpath(path, root), number, block


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("root")
    options = parser.parse_args()
    count, source = 0, PRELUDE
    for name, number, block in samples(options.root):
        count += 1
        if "COLLET_KERNEL_BACKEND(" in block:
            source += f'#line {number} "{name}"\n{block}\n'
        else:
            source += FUNCTION % (count, number, name, block)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "samples.cc")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        run = subprocess.run([options.compiler, "-std=c++20", "-fsyntax-only", "-Wno-unused-variable", "-I",
                              os.path.join(options.root, "sdk/include"), path], check=False)
    print(f"{count} samples {'compile' if run.returncode == 0 else 'do not all compile'}")
    return 1 if run.returncode != 0 or count < 8 else 0


if __name__ == "__main__":
    sys.exit(main())

// SPDX-License-Identifier: Apache-2.0
// Tests `collet quantize` and `collet run --compare-float` as a user calls them: data files, options and their errors, the
// report, and the comparison of layers.
#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "sdk/tool/tests/command.h"

namespace collet::tool::testing {
namespace {

const std::string kModel = "hlo/quantize/testdata/mlp.mlir";
const std::string kBackend = " --backend interpreter";

// Two layers whose weights are parameters.
constexpr const char* kLayers = R"(
HloModule layers
ENTRY main {
  x = f32[4,3] parameter(0)
  w1 = f32[3,5] parameter(1)
  b1 = f32[5] parameter(2)
  w2 = f32[5,2] parameter(3)
  d1 = f32[4,5] dot(x, w1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  bb = f32[4,5] broadcast(b1), dimensions={1}
  sum = f32[4,5] add(d1, bb)
  zero = f32[] constant(0)
  zeros = f32[4,5] broadcast(zero), dimensions={}
  relu = f32[4,5] maximum(sum, zeros)
  ROOT d2 = f32[4,2] dot(relu, w2), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
)";

std::string little_endian(uint64_t number, size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFF);
  return out;
}

/// A file as numpy.save writes it. `shape` is the inside of Python's tuple.
std::string npy(const std::string& type, const std::string& shape, const std::string& data, bool fortran = false) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" + shape + "), }";
  header.resize((header.size() + 10 + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  return "\x93NUMPY" + std::string("\x01\x00", 2) + little_endian(header.size(), 2) + header + data;
}

template <typename T = float>
std::string bytes_of(size_t count, int seed = 1) {
  std::string out(count * sizeof(T), '\0');
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<int64_t>((i * 7919 + static_cast<size_t>(seed) * 104729) % 2001) - 1000;
    const T value = static_cast<T>(static_cast<double>(number) / 1000);
    std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
  }
  return out;
}

/// A file as numpy.savez writes it: a zip file whose entries are not compressed.
std::string npz(const std::vector<std::pair<std::string, std::string>>& arrays, int method = 0) {
  std::string out, central;
  for (const auto& [name, data] : arrays) {
    boost::crc_32_type sum;
    sum.process_bytes(data.data(), data.size());
    const std::string file = name + ".npy";
    const std::string facts = little_endian(static_cast<uint64_t>(method), 2) + little_endian(0, 4) +
                              little_endian(sum.checksum(), 4) + little_endian(data.size(), 4) +
                              little_endian(data.size(), 4) + little_endian(file.size(), 2);
    central += "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) + little_endian(0, 2) + facts +
               little_endian(0, 2 + 2 + 2 + 2 + 4) + little_endian(out.size(), 4) + file;
    out += "PK\x03\x04" + little_endian(20, 2) + little_endian(0, 2) + facts + little_endian(0, 2) + file + data;
  }
  const std::string begin = little_endian(central.size(), 4) + little_endian(out.size(), 4);
  const std::string count = little_endian(arrays.size(), 2);
  return out + central + "PK\x05\x06" + little_endian(0, 4) + count + count + begin + little_endian(0, 2);
}

/// Data for kLayers: `batches` of x, and the weights.
std::string layers_data(size_t batches) {
  return npz({{"x", npy("<f4", std::to_string(4 * batches) + ", 3", bytes_of(12 * batches))},
              {"w1", npy("<f4", "3, 5", bytes_of(15, 2))},
              {"b1", npy("<f8", "5,", bytes_of<double>(5, 3))},
              {"w2", npy("<f4", "5, 2", bytes_of(10, 4))},
              {"labels", npy("<i4", "4,", bytes_of<int32_t>(4))}});
}

TEST(QuantizeCommand, QuantizesAndComparesLayerByLayer) {
  const Folder folder;
  write(folder / "images.npy", npy("<f4", "150, 64", bytes_of(150 * 64)));
  write(folder / "one.npy", npy("<f4", "50, 64", bytes_of(50 * 64, 9)));
  const Ran made = collet("quantize " + kModel + " --calibrate " + (folder / "images.npy") + " -o " +
                          (folder / "int8.mlir") + " --json " + (folder / "report.json") + kBackend);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(contains(made.out, "2 of 2 layers quantized")) << made.out;
  EXPECT_TRUE(contains(contents(folder / "int8.mlir"), "!quant.uniform<i8<-128:127>:f32, "));
  const std::string report = contents(folder / "report.json");
  for (const char* part : {"\"scheme\": \"w8a8\"", "\"method\": \"min-max\"", "\"batches\": 3", "\"zero_point\"",
                           "\"clipped_share\"", "\"snr_db\"", "\"form\": \"integers\""})
    EXPECT_TRUE(contains(report, part)) << part << report;
  const Ran compared = collet("run " + (folder / "int8.mlir") + " --compare-float " + kModel + " --inputs " +
                              (folder / "one.npy") + " --json " + (folder / "run.json") + kBackend);
  ASSERT_EQ(compared.code, 0) << compared.err;
  for (const char* part : {"layer ", "SNR", "dot ", "dot.1 ", "results ", "no layer's error grows"})
    EXPECT_TRUE(contains(compared.out, part)) << part << compared.out;
  const std::string json = contents(folder / "run.json");
  for (const char* part : {"\"compare_float\"", "\"snr_db\"", "\"max_abs_error\"", "\"cosine\"",
                           "\"paired_by_order\": false", "\"first_growth\": null"})
    EXPECT_TRUE(contains(json, part)) << part << json;
}

TEST(QuantizeCommand, WritesToStdoutAndReportsToStderr) {
  const Ran made = collet("quantize " + kModel + " --calibrate random:1" + kBackend);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(made.out.starts_with("module @")) << made.out.substr(0, 100);
  EXPECT_TRUE(contains(made.err, "layers quantized"));
  const Folder folder;
  const Ran json = collet("quantize --json - -o " + (folder / "out.mlirbc") + " --emit artifact " + kModel +
                          " --calibrate random:1 random:2" + kBackend);
  ASSERT_EQ(json.code, 0) << json.err;
  EXPECT_TRUE(json.out.starts_with("{")) << json.out.substr(0, 100);
  EXPECT_TRUE(contains(json.out, "\"batches\": 2"));
  EXPECT_EQ(collet("run " + (folder / "out.mlirbc") + kBackend).code, 0);
}

TEST(QuantizeCommand, WeightsBecomeConstants) {
  const Folder folder;
  write(folder / "layers.hlo", kLayers);
  write(folder / "data.npz", layers_data(3));
  write(folder / "one.npz", layers_data(1));
  const std::string call = "quantize " + (folder / "layers.hlo") + " --calibrate " + (folder / "data.npz") + kBackend;
  for (const std::string weights : {"auto", "w1,b1,w2", "1-3", "1,b1,3"}) {
    const Ran made = collet(call + " --weights " + weights + " -o " + (folder / "int8.mlir"));
    ASSERT_EQ(made.code, 0) << made.err;
    EXPECT_TRUE(contains(made.out, "s8, axis 1")) << made.out;
    EXPECT_FALSE(contains(made.out, "note:")) << made.out;
    const Ran compared = collet("run " + (folder / "int8.mlir") + " --compare-float " + (folder / "layers.hlo") +
                                " --inputs " + (folder / "one.npz") + kBackend);
    ASSERT_EQ(compared.code, 0) << compared.err;
    EXPECT_TRUE(contains(compared.out, "d1 ")) << compared.out;
    EXPECT_TRUE(contains(compared.out, "d2 ")) << compared.out;
  }
  const Ran open = collet(call + " -o " + (folder / "int8.mlir"));
  ASSERT_EQ(open.code, 0) << open.err;
  EXPECT_TRUE(contains(open.out, "note: parameter 1 (w1) is the right operand of d1")) << open.out;
  const auto refused = [&](const std::string& more) {
    const Ran ran = collet(call + more);
    EXPECT_EQ(ran.code, 3) << more << ran.err;
    return ran.err;
  };
  EXPECT_TRUE(
      contains(refused(" --weights w9"), "--weights w9: the program has no such parameter; it has x, w1, b1, w2"));
  EXPECT_TRUE(contains(refused(" --weights 2-7"), "no such parameter"));
  EXPECT_TRUE(contains(refused(" --weights 0"), "parameter 0 (x) has several values in the data"));
  const Ran one = collet("quantize " + (folder / "layers.hlo") + " --weights auto --calibrate " + (folder / "one.npz"));
  EXPECT_EQ(one.code, 3);
  EXPECT_TRUE(contains(one.err, "there is one batch: name them")) << one.err;
}

TEST(QuantizeCommand, DataIsReadFromFolders) {
  const Folder folder;
  write(folder / "layers.hlo", kLayers);
  const std::string data = folder / "data";
  for (const std::string batch : {"/0", "/1"}) {
    std::filesystem::create_directories(data + batch);
    write(data + batch + "/0_x.npy", npy("<f4", "4, 3", bytes_of(12, batch == "/0" ? 1 : 2)));
    write(data + batch + "/1_w1.bin", bytes_of(15));
    write(data + batch + "/2_b1.bin", bytes_of(5));
    write(data + batch + "/3_w2.npy", npy("<f4", "5, 2", bytes_of(10)));
  }
  write(data + "/2.npz", layers_data(2));
  const std::string call = "quantize " + (folder / "layers.hlo") + " --json - -o " + (folder / "int8.mlir") +
                           " --calibrate " + data + kBackend;
  const Ran made = collet(call);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(contains(made.out, "\"batches\": 4")) << made.out;
  write(data + "/1/1_w1.bin", bytes_of(14));
  const Ran damaged = collet(call);
  EXPECT_EQ(damaged.code, 3);
  EXPECT_TRUE(contains(damaged.err, "parameter 1, f32[3,5], takes 60 bytes")) << damaged.err;
  std::filesystem::create_directories(folder / "empty");
  const Ran empty = collet("quantize " + (folder / "layers.hlo") + " --calibrate " + (folder / "empty"));
  EXPECT_EQ(empty.code, 3);
  EXPECT_TRUE(contains(empty.err, "the folder is empty")) << empty.err;
}

// Of a batch of twelve files, output_10.bin is the one behind output_9.bin.
TEST(QuantizeCommand, FilesOfABatchAreInTheOrderOfTheirNumbers) {
  const Folder folder;
  std::string text = "HloModule m\nENTRY e {\n";
  std::filesystem::create_directories(folder / "data/0");
  for (int i = 0; i < 12; ++i) {
    text += "  x" + std::to_string(i) + " = f32[4,4] parameter(" + std::to_string(i) + ")\n";
    const std::vector<float> values(16, static_cast<float>(i + 1));
    write(folder / ("data/0/output_" + std::to_string(i) + ".bin"),
          {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)});
  }
  write(folder / "m.hlo",
        text +
            "  w = f32[4,4] constant({{1,0,0,0},{0,1,0,0},{0,0,1,0},{0,0,0,1}})\n"
            "  ROOT d = f32[4,4] dot(x2, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n");
  const Ran made = collet("quantize " + (folder / "m.hlo") + " --json - -o " + (folder / "int8.mlir") +
                          " --calibrate " + (folder / "data") + kBackend);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(contains(made.out, "\"high\": 3")) << made.out;
}

// The directory of a file of more than 4 GiB, or of many arrays, is named by a record with larger numbers.
TEST(QuantizeCommand, LargeArchivesAreRead) {
  const Folder folder;
  write(folder / "add.hlo", "HloModule add\nENTRY e {\n  x = s32[2] parameter(0)\n  ROOT y = s32[2] negate(x)\n}\n");
  const int64_t numbers[] = {7, -8};
  std::string bytes = npz({{"arg0", npy("<i8", "2,", {reinterpret_cast<const char*>(numbers), sizeof numbers})}});
  constexpr size_t kEnd = 22;
  const size_t end = bytes.size() - kEnd;
  const auto little = [](uint64_t x, int width) {
    std::string out;
    for (int i = 0; i < width; ++i) out += static_cast<char>(x >> 8 * i & 0xFF);
    return out;
  };
  uint64_t directory = 0;
  for (int i = 3; i >= 0; --i)
    directory = directory << 8 | static_cast<uint8_t>(bytes[end + 16 + static_cast<size_t>(i)]);
  const std::string record = "PK\x06\x06" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
                             little(1, 8) + little(1, 8) + little(end - directory, 8) + little(directory, 8);
  const std::string locator = "PK\x06\x07" + little(0, 4) + little(end, 8) + little(1, 4);
  bytes.replace(end + 16, 4, little(0xFFFFFFFF, 4));
  bytes.insert(end, record + locator);
  write(folder / "data.npz", bytes);
  const Ran ran = collet("run " + (folder / "add.hlo") + " --inputs " + (folder / "data.npz") + kBackend);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "[-7, 8]")) << ran.out;
}

// Arrays in Fortran's order, of doubles and of whole numbers, and rows that are no whole batch.
TEST(QuantizeCommand, ArraysAreConverted) {
  const Folder folder;
  write(folder / "add.hlo",
        "HloModule add\nENTRY e {\n  x = f32[2,3] parameter(0)\n  n = s32[2] parameter(1)\n"
        "  ROOT t = (f32[2,3], s32[2]) tuple(x, n)\n}\n");
  const double values[] = {1, 4, 2, 5, 3, 6};
  const int64_t numbers[] = {7, -8};
  write(folder / "data.npz",
        npz({{"arg0", npy("<f8", "2, 3", {reinterpret_cast<const char*>(values), sizeof values}, true)},
             {"arg1", npy("<i8", "2,", {reinterpret_cast<const char*>(numbers), sizeof numbers})}}));
  const Ran ran = collet("run " + (folder / "add.hlo") + " --inputs " + (folder / "data.npz") + kBackend);
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_TRUE(contains(ran.out, "[1, 2, 3, 4, 5, 6]")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "[7, -8]")) << ran.out;
  write(folder / "rows.npy", npy("<f4", "120, 64", bytes_of(120 * 64)));
  const Ran made = collet("quantize " + kModel + " --no-layer-errors --calibrate " + (folder / "rows.npy") + " -o " +
                          (folder / "int8.mlir") + kBackend);
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_TRUE(contains(made.out, "the last 20 rows are no whole batch of 50, and are left out")) << made.out;
}

struct BadData {
  const char* name;
  std::string bytes;
  const char* says;
};

TEST(QuantizeCommand, DamagedDataIsAnErrorThatNamesThePlace) {
  std::string nan = bytes_of(50 * 64);
  const float bad = std::nanf("");
  std::memcpy(nan.data() + 68, &bad, 4);
  std::string broken = npz({{"x", npy("<f4", "50, 64", bytes_of(50 * 64))}});
  broken[5000] = static_cast<char>(broken[5000] + 1);
  const std::string good = npy("<f4", "50, 64", bytes_of(50 * 64));
  const BadData cases[] = {
      {"a.npy", "", "it is no file of numpy.save"},
      {"b.npy", good.substr(0, 40), "its header is cut off"},
      {"c.npy", good.substr(0, 1000), "it has 872 bytes of elements; f32[50,64] needs 12800"},
      {"d.npy", npy(">f4", "50, 64", bytes_of(50 * 64)), "its elements are '>f4'"},
      {"e.npy", npy("<f4", "50, 63", bytes_of(50 * 63)),
       "parameter 0 (Arg_0): the array is f32[50,63]; f32[50,64], or several of it"},
      {"f.npy", npy("<i4", "50, 64", bytes_of<int32_t>(50 * 64)), "the array is s32[50,64]; f32[50,64] is needed"},
      {"g.npy", npy("<f4", "50, 64", nan), "element 17 is NaN"},
      {"h.npz", good, "it is no zip file"},
      {"i.npz", broken, "array 'x' is damaged: its checksum differs"},
      {"j.npz", npz({{"x", good}}, 8), "array 'x' is compressed: write the file by numpy.savez"},
      {"k.npz", npz({{"x", good}, {"y", good}}), "there is no array for parameter 0 (Arg_0) among: x, y"},
      {"l.npz", npz({}), "there is no array for parameter 0 (Arg_0) among: "},
      {"m.txt", "1 2 3", "data is random:SEED, rule, a .npy or .npz file, or a folder"},
      {"n.npy", npy("<f4", "99999999999, 99999999999", ""), "its shape is too large"},
      {"o.npy", npy("<f4", "50, x", ""), "its header has no shape"},
  };
  const Folder folder;
  for (const BadData& one : cases) {
    write(folder / one.name, one.bytes);
    const Ran ran = collet("quantize " + kModel + " --calibrate " + (folder / one.name) + kBackend);
    EXPECT_EQ(ran.code, 3) << one.name << ran.err;
    EXPECT_TRUE(contains(ran.err, one.says)) << one.name << ": " << ran.err;
    EXPECT_TRUE(contains(ran.err, one.name)) << ran.err;
    EXPECT_EQ(ran.out, "") << one.name;
  }
}

TEST(QuantizeCommand, WrongUseSaysWhatIsWrong) {
  struct Use {
    std::string arguments;
    int code;
    const char* says;
  };
  const std::string quantize = "quantize " + kModel;
  const std::string data = quantize + " --calibrate random:1";
  const Folder folder;
  write(folder / "add.hlo", "HloModule a\nENTRY e {\n  x = f32[2] parameter(0)\n  ROOT y = f32[2] add(x, x)\n}\n");
  const Use uses[] = {
      {"quantize", 2, "FILE is required"},
      {quantize, 2, "the scheme w8a8 needs data for the ranges of activations: name it by --calibrate"},
      {quantize + " --scheme w8 --mixed 1", 2, "--calibrate"},
      {quantize + " --scheme w8 --weights auto", 2, "--calibrate"},
      {data + " --scheme w8a9", 2, "there is no 'w8a9'; did you mean w8a8?"},
      {data + " --method entropie", 2, "did you mean entropy?"},
      {data + " --percentile 0", 2, "0 is no percentage above 0"},
      {data + " --percentile 101", 2, "101 is no percentage"},
      {data + " --max-error -1", 2, "-1 is no error above 0"},
      {data + " --mixed 0", 2, "--mixed"},
      {data + " --mixed 1 --max-error 1", 2, "excludes"},
      {data + " --emit hlo", 2, "there is no 'hlo'"},
      {data + " --json -", 2, "--output and --json cannot both be stdout"},
      {data + " -o no/such/folder/x.mlir", 4, "cannot be written"},
      {quantize + " --calibrate random:x", 3, "the seed is a number"},
      {quantize + " --calibrate no_such.npy", 3, "no_such.npy"},
      {data + " --keep-float nothing" + kBackend, 3, "'nothing' matches no product of the program"},
      {data + " --mixed 2" + kBackend, 3, "nothing to quantize: 2 of the 2 layers are to stay float"},
      {"quantize no_such.mlir --calibrate random:1", 3, "no_such.mlir cannot be read"},
      {"quantize " + (folder / "add.hlo") + " --calibrate random:1" + kBackend, 3,
       "nothing to quantize: the program has no dot and no convolution"},
      {data + " --backend no_such_backend", 4, "no_such_backend"},
      {"run " + kModel + " --compare-float " + (folder / "add.hlo") + kBackend, 3,
       "parameter 0 of the quantized program is f32[50,64]; of the float program f32[2]"},
      {"run " + (folder / "add.hlo") + " --compare-float " + kModel + kBackend, 3, "StableHLO is needed"},
      {"run " + kModel + " --compare-float no_such.mlir" + kBackend, 3, "no_such.mlir cannot be read"},
      {"run " + kModel + " --compare-float " + kModel + " --target x", 2, "--compare-float"},
      {"run " + kModel + " --compare-float " + kModel + " --processes 2", 2, "one participant"},
  };
  for (const Use& use : uses) {
    const Ran ran = collet(use.arguments);
    EXPECT_EQ(ran.code, use.code) << use.arguments << "\n" << ran.err;
    EXPECT_TRUE(contains(ran.err, use.says)) << use.arguments << "\n" << ran.err;
  }
}

TEST(QuantizeCommand, LayersThatStayFloatAreNamed) {
  const Folder folder;
  const Ran mixed =
      collet("quantize " + kModel + " --calibrate random:1 --mixed 1 -o " + (folder / "x.mlir") + kBackend);
  ASSERT_EQ(mixed.code, 0) << mixed.err;
  EXPECT_TRUE(contains(mixed.out, "float: kept float: one of the most sensitive layers")) << mixed.out;
  EXPECT_TRUE(contains(mixed.out, "1 of 2 layers quantized")) << mixed.out;
  const Ran kept =
      collet("quantize " + kModel + " --calibrate random:1 --keep-float dot.1 -o " + (folder / "x.mlir") + kBackend);
  ASSERT_EQ(kept.code, 0) << kept.err;
  EXPECT_TRUE(contains(kept.out, "float: kept float by 'dot.1'")) << kept.out;
  const Ran weights = collet("quantize " + kModel + " --scheme w4 -o " + (folder / "x.mlir") + kBackend);
  ASSERT_EQ(weights.code, 0) << weights.err;
  EXPECT_TRUE(contains(weights.out, "s4, axis 1")) << weights.out;
  EXPECT_TRUE(contains(contents(folder / "x.mlir"), "!quant.uniform<i4<-7:7>:f32:1, {"));
}

// The device takes both layers as groups of integers; nothing is left to the fallback.
TEST(QuantizeCommand, ADeviceForQuantizedLayersRunsAll) {
  const Folder folder;
  ASSERT_EQ(collet("quantize " + kModel + " --calibrate random:1 -o " + (folder / "x.mlir") + kBackend).code, 0);
  const std::string npu = build_dir() + "/lib/collet/test_backends/libcollet_backend_npu.so";
  const Ran ran =
      collet("run " + (folder / "x.mlir") + " --backend " + npu + " --no-fallback --explain --compare interpreter");
  ASSERT_EQ(ran.code, 0) << ran.err << ran.out;
  EXPECT_TRUE(contains(ran.out, "npu: 3 ops on the device, 0 on the fallback")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "call 'integer_dot'")) << ran.out;
  // The float program needs the fallback.
  const Ran compared = collet("run " + (folder / "x.mlir") + " --backend " + npu + " --compare-float " + kModel);
  ASSERT_EQ(compared.code, 0) << compared.err;
  EXPECT_TRUE(contains(compared.out, "no layer's error grows")) << compared.out;
}

}  // namespace
}  // namespace collet::tool::testing

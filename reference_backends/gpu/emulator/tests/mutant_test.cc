// SPDX-License-Identifier: Apache-2.0
// Tests the emulator's checks: correct kernels must pass them, and each mutant, which is such a kernel with one fault,
// must be caught.
#include <numeric>

#include "reference_backends/gpu/emulator/tests/gpu.h"
#include "reference_backends/gpu/emulator/tests/ptxas.h"

namespace collet::gpu::testing_only {
namespace {

using ::testing::HasSubstr;

/// Each block transposes 32 x 32 elements through a tile in shared memory, with 32 x 8 threads.
const std::string kTranspose = ptx_header() + R"(
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 size) {
	.reg .pred done;
	.reg .b32 x, y, s, r, i, b, n;
	.reg .f32 v;
	.reg .b64 p, q, a;
	.shared .align 4 .b8 tile[4224];
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	mov.u32 i, %tid.x;
	and.b32 x, i, 31;
	shr.u32 y, i, 5;
	mov.u32 b, %ctaid.x;
	mad.wide.u32 p, b, 4096, p;
	mad.wide.u32 q, b, 4096, q;
$load:
	mad.lo.u32 i, y, 32, x;
	mad.wide.u32 a, i, 4, p;
	ld.global.f32 v, [a];
	mov.u32 s, tile;
	mad.lo.u32 s, y, 132, s;
	mad.lo.u32 s, x, 4, s;
	st.shared.f32 [s], v;
	add.u32 y, y, 8;
	setp.lt.u32 done, y, 32;
	@done bra $load;
	bar.sync 0;
	sub.u32 y, y, 32;
$store:
	mov.u32 s, tile;
	mad.lo.u32 s, x, 132, s;
	mad.lo.u32 s, y, 4, s;
	ld.shared.f32 v, [s];
	mad.lo.u32 i, y, 32, x;
	mad.wide.u32 a, i, 4, q;
	st.global.f32 [a], v;
	add.u32 y, y, 8;
	setp.lt.u32 done, y, 32;
	@done bra $store;
	ret;
}
)";

/// A tree reduction in shared memory, with a barrier after each step. Each block of 128 threads sums up to 128
/// elements.
const std::string kTree = ptx_header() + R"(
.extern .shared .align 4 .b8 part[];
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 size) {
	.reg .pred in, more, first;
	.reg .b32 i, g, b, n, s, o, half;
	.reg .f32 v, w;
	.reg .b64 p, q;
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	ld.param.u32 n, [size];
	mov.u32 i, %tid.x;
	mov.u32 b, %ctaid.x;
	mad.lo.u32 g, b, 128, i;
	setp.lt.u32 in, g, n;
	mov.f32 v, 0f00000000;
	mad.wide.u32 p, g, 4, p;
	@in ld.global.f32 v, [p];
	mov.u32 s, part;
	mad.lo.u32 s, i, 4, s;
	st.shared.f32 [s], v;
	bar.sync 0;
	mov.u32 half, 64;
$step:
	setp.lt.u32 more, i, half;
	mad.lo.u32 o, half, 4, s;
	@!more bra $skip;
	ld.shared.f32 w, [o];
	ld.shared.f32 v, [s];
	add.f32 v, v, w;
	st.shared.f32 [s], v;
$skip:
	bar.sync 0;
	shr.u32 half, half, 1;
	setp.ne.u32 more, half, 0;
	@more bra $step;
	setp.eq.u32 first, i, 0;
	mad.wide.u32 q, b, 4, q;
	@first st.global.f32 [q], v;
	ret;
}
)";

/// The lanes of each warp pass values to each other through shared memory.
const std::string kWarp = ptx_header() + R"(
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 size) {
	.reg .b32 i, s, o, v;
	.reg .b64 p, q;
	.shared .align 4 .b8 part[512];
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	mov.u32 i, %tid.x;
	mad.wide.u32 p, i, 4, p;
	mad.wide.u32 q, i, 4, q;
	ld.global.u32 v, [p];
	mov.u32 s, part;
	mad.lo.u32 o, i, 4, s;
	st.shared.u32 [o], v;
	bar.warp.sync 0xffffffff;
	xor.b32 o, i, 1;
	mad.lo.u32 o, o, 4, s;
	ld.shared.u32 v, [o];
	shfl.sync.bfly.b32 v, v, 1, 31, 0xffffffff;
	st.global.u32 [q], v;
	ret;
}
)";

/// The last block to finish adds the partial results that all blocks have stored in memory.
const std::string kLast = ptx_header() + R"(
.visible .global .align 4 .u32 count = 0;
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 size) {
	.reg .pred first, is_last, more;
	.reg .b32 i, b, blocks, c, v, sum;
	.reg .b64 p, q, a;
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	mov.u32 b, %ctaid.x;
	mov.u32 blocks, %nctaid.x;
	mad.wide.u32 a, b, 4, p;
	ld.global.u32 v, [a];
	add.u32 v, v, 1;
	mad.wide.u32 a, b, 4, q;
	st.global.u32 [a+4], v;
	membar.gl;
	mov.u64 a, count;
	atom.global.add.u32 c, [a], 1;
	add.u32 c, c, 1;
	setp.ne.u32 is_last, c, blocks;
	@is_last ret;
	mov.u32 i, 0;
	mov.u32 sum, 0;
$more:
	mad.wide.u32 a, i, 4, q;
	ld.volatile.global.u32 v, [a+4];
	add.u32 sum, sum, v;
	add.u32 i, i, 1;
	setp.lt.u32 more, i, blocks;
	@more bra $more;
	st.global.u32 [q], sum;
	ret;
}
)";

/// A histogram with atomic operations in shared and in global memory.
const std::string kHistogram = ptx_header() + R"(
.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 size) {
	.reg .pred few;
	.reg .b32 i, g, b, v, s, o, zero;
	.reg .b64 p, q;
	.shared .align 4 .b8 bins[64];
	ld.param.u64 p, [from];
	ld.param.u64 q, [to];
	mov.u32 i, %tid.x;
	mov.u32 b, %ctaid.x;
	mad.lo.u32 g, b, 128, i;
	setp.lt.u32 few, i, 16;
	mov.u32 s, bins;
	mad.lo.u32 o, i, 4, s;
	mov.u32 zero, 0;
	@few st.shared.u32 [o], zero;
	bar.sync 0;
	mad.wide.u32 p, g, 4, p;
	ld.global.u32 v, [p];
	and.b32 v, v, 15;
	mad.lo.u32 v, v, 4, s;
	red.shared.add.u32 [v], 1;
	bar.sync 0;
	@!few ret;
	ld.shared.u32 v, [o];
	mad.wide.u32 q, i, 4, q;
	red.global.add.u32 [q], v;
	ret;
}
)";

constexpr char kRace[] = "race in shared memory";

struct Mutant {
  const char* what;
  const std::string* kernel;
  const char* from;  ///< the text of which the first occurrence is replaced; empty to replace nothing
  const char* to;
  const char* finding;
  uint32_t n = 512;
  unsigned shared = 512;
  size_t output = 4 * 4096;  ///< size of the output in bytes
  bool clears = false;       ///< whether the output is set to 0 before the launch
};

const Mutant kCorrect[] = {
    {"transpose", &kTranspose, "", "", ""},
    {"tree", &kTree, "", "", "", 500, 512, 16},
    {"warp", &kWarp, "", "", ""},
    {"last block", &kLast, "", "", "", 512, 0, 20},
    {"histogram", &kHistogram, "", "", "", 512, 0, 64, true},
};

const Mutant kMutants[] = {
    {"barrier removed", &kTranspose, "bar.sync 0;", "", kRace},
    {"barrier for half of the threads", &kTranspose, "bar.sync 0;", "bar.sync 0, 128;", kRace},
    {"wrong stride of the tile", &kTranspose, "mad.lo.u32 s, y, 132, s;", "mad.lo.u32 s, y, 128, s;", kRace},
    {"stride of the tile too large", &kTranspose, "mad.lo.u32 s, y, 132, s;", "mad.lo.u32 s, y, 144, s;",
     "out of bounds"},
    {"tile too small", &kTranspose, "tile[4224]", "tile[4096]", "out of bounds"},
    {"one row too many is loaded", &kTranspose, "setp.lt.u32 done, y, 32;", "setp.le.u32 done, y, 32;",
     "out of bounds"},
    {"the tile is not written", &kTranspose, "st.shared.f32 [s], v;", "", "nobody wrote these bytes before"},
    {"misaligned", &kTranspose, "mad.wide.u32 a, i, 4, p;", "mad.wide.u32 a, i, 2, p;", "misaligned"},
    {"vector access of scalar data", &kTranspose, "ld.global.f32 v, [a];", "ld.global.v2.f32 {v, _}, [a];",
     "misaligned"},
    {"all blocks write the same rows", &kTranspose, "mad.wide.u32 q, b, 4096, q;", "mad.wide.u32 q, b, 2048, q;",
     "race in global memory"},
    {"null pointer", &kTranspose, "ld.param.u64 q, [to];", "mov.u64 q, 0;", "null pointer"},
    {"host address", &kTranspose, "ld.param.u64 q, [to];", "mov.u64 q, 0x10000;", "no memory of a device"},
    {"first barrier removed", &kTree, "st.shared.f32 [s], v;\n\tbar.sync 0;", "st.shared.f32 [s], v;", kRace},
    {"barrier of the loop removed", &kTree, "$skip:\n\tbar.sync 0;", "$skip:", kRace},
    {"barrier only for those that add", &kTree, "st.shared.f32 [s], v;\n$skip:\n\tbar.sync 0;",
     "st.shared.f32 [s], v;\n\tbar.sync 0;\n$skip:", "divergence"},
    {"mask off by one", &kTree, "setp.lt.u32 in, g, n;", "setp.le.u32 in, g, n;",
     "out of bounds, 0 bytes after the end", 500, 512, 16},
    {"no mask", &kTree, "@in ld.global", "ld.global", "out of bounds", 500, 512, 16},
    {"shared memory beyond the launch", &kTree, "", "", "out of bounds", 500, 508, 16},
    {"no shared memory in the launch", &kTree, "", "", "out of bounds", 500, 0, 16},
    {"output too small", &kTree, "", "", "out of bounds", 500, 512, 12},
    {"threads exit before the barrier", &kTree, "setp.lt.u32 in, g, n;", "setp.lt.u32 in, g, n;\n\t@!in ret;",
     "divergence", 500, 512, 16},
    {"endless loop", &kTree, "shr.u32 half, half, 1;", "shr.u32 half, half, 0;", "ran longer", 500, 512, 16},
    {"trap", &kTree, "mov.u32 half, 64;", "trap;", "trap", 500, 512, 16},
    {"warp barrier removed", &kWarp, "bar.warp.sync 0xffffffff;", "", kRace},
    {"warp barrier for half of the lanes", &kWarp, "bar.warp.sync 0xffffffff;", "bar.warp.sync 0xffff;",
     "does not have the thread's own lane"},
    {"lane of another warp", &kWarp, "xor.b32 o, i, 1;", "xor.b32 o, i, 32;", kRace},
    {"shuffle without some lanes", &kWarp, "shfl.sync.bfly.b32 v, v, 1, 31, 0xffffffff;",
     "{ .reg .pred h; setp.lt.u32 h, i, 100; @h shfl.sync.bfly.b32 v, v, 1, 31, 0xffffffff; @h bar.sync 0; }",
     "divergence"},
    {"reads what was never written", &kWarp, "ld.global.u32 v, [p];", "ld.global.u32 v, [q];",
     "nobody wrote these bytes before"},
    {"missing fence", &kLast, "membar.gl;", "", "race in global memory", 512, 0, 20},
    {"not atomic over blocks", &kHistogram, "red.global.add.u32 [q], v;",
     "{ .reg .b32 t; ld.global.u32 t, [q]; add.u32 t, t, v; st.global.u32 [q], t; }", "race in global memory", 512, 0,
     64, true},
    {"not atomic in a block", &kHistogram, "red.shared.add.u32 [v], 1;",
     "{ .reg .b32 t; ld.shared.u32 t, [v]; add.u32 t, t, 1; st.shared.u32 [v], t; }", kRace, 512, 0, 64, true},
    {"barrier before the bins are read removed", &kHistogram, "bar.sync 0;\n\t@!few ret;", "@!few ret;", kRace, 512, 0,
     64, true},
    {"bins not cleared", &kHistogram, "@few st.shared.u32 [o], zero;", "", "nobody wrote these bytes before", 512, 0,
     64, true},
    {"output not cleared", &kHistogram, "", "", "nobody wrote these bytes before", 512, 0, 64, false},
    {"one bin too many", &kHistogram, "setp.lt.u32 few, i, 16;", "setp.le.u32 few, i, 16;", "out of bounds", 512, 0, 64,
     true},
};

class MutantTest : public GpuTest {
 protected:
  static std::string text_of(const Mutant& m) {
    std::string text = *m.kernel;
    if (*m.from) {
      const size_t at = text.find(m.from);
      EXPECT_NE(at, std::string::npos) << m.what;
      if (at != std::string::npos) text.replace(at, std::strlen(m.from), m.to);
    }
    return text;
  }
  CUresult run_mutant(const Mutant& m) {
    CUfunction f = load(text_of(m), "k");
    if (!f) return load_result;
    std::vector<uint32_t> in(m.kernel == &kTranspose ? 4096 : m.n);
    std::iota(in.begin(), in.end(), 0u);
    const CUdeviceptr from = upload(in), to = allocated(m.output);
    if (m.clears) {
      EXPECT_EQ(d.cuMemsetD8Async(to, 0, m.output, nullptr), CUDA_SUCCESS);
    }
    const unsigned blocks = m.kernel == &kWarp ? 1 : 4;
    const unsigned threads = m.kernel == &kTranspose ? 256 : m.kernel == &kLast ? 1 : 128;
    return run(f, blocks, threads, m.kernel == &kTree ? m.shared : 0, from, to, m.n);
  }
};

TEST_F(MutantTest, CorrectKernelsHaveNoFindings) {
  for (const Mutant& m : kCorrect) {
    EXPECT_EQ(run_mutant(m), CUDA_SUCCESS) << m.what << ": " << finding();
  }
}

TEST_F(MutantTest, EachIsFound) {
  for (const Mutant& m : kMutants) {
    const CUresult result = run_mutant(m);
    EXPECT_NE(result, CUDA_SUCCESS) << m.what;
    // A read before the write may be reported as a read of bytes that nobody has written.
    const bool early =
        std::string(m.finding) == kRace && finding().find("nobody wrote these bytes before") != std::string::npos;
    if (!early) {
      EXPECT_THAT(finding(), HasSubstr(m.finding)) << m.what;
    }
    EXPECT_THAT(finding(), ::testing::ContainsRegex(
                               "kernel k, block \\([0-9]+,0,0\\), thread \\([0-9]+,0,0\\), PTX line [0-9]+: "))
        << m.what;
    TearDown();
    SetUp();
  }
}

TEST_F(MutantTest, TextsAreLegal) {
  if (find_ptxas().empty()) GTEST_SKIP() << "no ptxas on this machine";
  for (const Mutant& m : kMutants) EXPECT_EQ(assemble(text_of(m)), "") << m.what;
}

// Thread 0 writes the first half of a word, thread 1 the second one, and thread 40 of another warp reads or writes the first.
TEST_F(MutantTest, RacesOnPartsOfWords) {
  const auto text = [](const std::string& of_first, const std::string& of_second, const std::string& other) {
    return ptx_header() +
           ".visible .entry k(.param .u64 to) {\n.reg .pred p, q, r;\n.reg .b32 i;\n.reg .b16 h;\n"
           ".shared .align 4 .b8 box[4];\nmov.u32 i, %tid.x;\nsetp.eq.u32 p, i, 0;\nsetp.eq.u32 q, i, 1;\n"
           "setp.eq.u32 r, i, 40;\nmov.b16 h, 7;\n@p st.shared.b32 [box], 0;\nbar.sync 0;\n@p " +
           of_first + ";\n@q " + of_second + ";\n@r " + other + ";\nret;\n}\n";
  };
  const std::string read = "ld.shared.b16 h, [box]", write = "st.shared.b16 [box], h";
  const std::string read_next = "ld.shared.b16 h, [box+2]", write_next = "st.shared.b16 [box+2], h";
  const std::string write_both = "st.shared.b32 [box], 1";
  struct Case {
    std::string first, second, other;
    bool is_race = true;
  };
  for (const Case& c : {Case{write, write_next, read}, Case{read, read_next, write}, Case{read, read_next, write_both},
                        Case{write, write_next, write_both}, Case{write, read, read_next},
                        Case{write, read_next, read_next, false}, Case{read, write_next, read, false}}) {
    const CUresult result = run(load(text(c.first, c.second, c.other), "k"), 1, 64, 0, 0ull);
    EXPECT_EQ(result, c.is_race ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS) << c.first << c.second << c.other;
    if (c.is_race) {
      EXPECT_THAT(finding(), HasSubstr(kRace));
    }
    TearDown();
    SetUp();
  }
}

// Warp 0 arrives at a barrier for which warp 1 waits, and goes on. Only what it did before happens before the read of warp 1.
TEST_F(MutantTest, RacesBehindAnArrival) {
  const auto text = [](const std::string& before, const std::string& behind) {
    return ptx_header() +
           ".visible .entry k(.param .u64 to) {\n.reg .pred p, r;\n.reg .b32 i, v;\n.shared .align 4 .b8 box[4];\n"
           "mov.u32 i, %tid.x;\nsetp.eq.u32 p, i, 0;\nsetp.ge.u32 r, i, 32;\n"
           "@p st.shared.b32 [box], 0;\nbar.sync 0;\n@r bra $other;\n" +
           before + "bar.arrive 1, 64;\n" + behind +
           "ret;\n$other:\nbar.sync 1, 64;\nld.shared.b32 v, [box];\nret;\n}\n";
  };
  const std::string write = "@p st.shared.b32 [box], 9;\n";
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(run(load(text(write, ""), "k"), 1, 64, 0, 0ull), CUDA_SUCCESS) << finding();
    EXPECT_EQ(run(load(text("", "ld.shared.b32 v, [box];\n"), "k"), 1, 64, 0, 0ull), CUDA_SUCCESS) << finding();
    for (const std::string& race : {text("", write), text("", "bar.warp.sync 0xffffffff;\n" + write)}) {
      EXPECT_EQ(run(load(race, "k"), 1, 64, 0, 0ull), CUDA_ERROR_LAUNCH_FAILED) << race;
      EXPECT_THAT(finding(), HasSubstr(kRace));
      TearDown();
      SetUp();
    }
  }
}

// What warp 1 did before its wait is not ordered before what warp 0, which only arrives, does behind its arrival.
TEST_F(MutantTest, AnArrivalIsNoWait) {
  const std::string text =
      ptx_header() +
      ".visible .entry k(.param .u64 to) {\n.reg .pred p, q, r;\n.reg .b32 i, v;\n.shared .align 4 .b8 box[4];\n"
      "mov.u32 i, %tid.x;\nsetp.eq.u32 p, i, 0;\nsetp.eq.u32 q, i, 40;\nsetp.ge.u32 r, i, 32;\n"
      "@p st.shared.b32 [box], 0;\nbar.sync 0;\n@r bra $other;\nbar.arrive 1, 64;\nbar.warp.sync 0xffffffff;\n"
      "@p ld.shared.b32 v, [box];\nret;\n"
      "$other:\n@q st.shared.b32 [box], 1;\nbar.sync 1, 64;\nret;\n}\n";
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(run(load(text, "k"), 1, 64, 0, 0ull), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_THAT(finding(), HasSubstr(kRace));
    TearDown();
    SetUp();
  }
}

// An atomic access does not hide a plain one of the same thread before it.
TEST_F(MutantTest, RacesOfPlainAndAtomicAccesses) {
  const auto text = [](const std::string& body) {
    return ptx_header() +
           ".visible .entry k(.param .u64 to) {\n.reg .pred p, q;\n.reg .b32 i, b, v, w;\n.reg .b64 to;\n"
           ".shared .align 4 .b8 box[4];\nmov.u32 i, %tid.x;\nmov.u32 b, %ctaid.x;\nsetp.eq.u32 p, i, 0;\n"
           "setp.eq.u32 q, b, 0;\nld.param.u64 to, [to];\n" +
           body + "ret;\n}\n";
  };
  struct Case {
    std::string body;
    unsigned blocks, threads;
    const char* finding;  ///< empty if there is none
  };
  const char* const global = "race in global memory";
  const std::string zero = "@p st.shared.b32 [box], 0;\n", add = "atom.shared.add.u32 v, [box], 1;\n";
  const std::string own = "mad.wide.u32 to, b, 4, to;\n", add_global = "atom.global.add.u32 v, [to], 1;\n";
  const std::string next = "ld.global.u32 w, [to+4];\nadd.u32 v, v, w;\n", first = "ld.global.u32 v, [to];\n";
  for (const Case& c : {
           Case{zero + add, 1, 32, kRace},
           Case{zero + add, 1, 64, kRace},
           Case{zero + "bar.sync 0;\n" + add, 1, 64, ""},
           Case{zero + "bar.warp.sync 0xffffffff;\n" + add, 1, 32, ""},
           Case{zero + "bar.warp.sync 0xffffffff;\n" + add, 1, 64, kRace},
           Case{zero + "bar.sync 0;\n" + add + "bar.sync 0;\n" + zero + "bar.sync 0;\n" + add, 1, 64, ""},
           Case{"@q st.global.u32 [to], 0;\n" + add_global, 2, 1, global},
           Case{"@q ld.global.u32 v, [to];\n" + add_global, 2, 1, global},
           Case{"ld.volatile.global.u32 v, [to];\n" + add_global, 3, 1, ""},
           Case{own + first + next + "st.global.u32 [to], v;\n", 2, 1, global},
           Case{own + first + next + "st.global.u32 [to], v;\n", 3, 1, global},
           Case{own + first + "st.global.u32 [to], v;\n" + add_global, 3, 1, ""},
           Case{first + "@!q bra $end;\nst.global.u32 [to+16], v;\n$end:\n", 3, 1, ""},
       }) {
    for (int i = 0; i < 6; ++i) {
      const CUdeviceptr to = upload(std::vector<uint32_t>(8));
      const CUresult result = run(load(text(c.body), "k"), c.blocks, c.threads, 0, to);
      EXPECT_EQ(result, *c.finding ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS) << c.body << finding();
      if (*c.finding) {
        // A lane that comes before the first one may meet a word that nobody has written.
        EXPECT_THAT(finding(), ::testing::AnyOf(HasSubstr(c.finding), HasSubstr("nobody wrote these bytes before")))
            << c.body;
      }
      TearDown();
      SetUp();
    }
  }
}

// The lanes of a warp arrive at a barrier together, except for one without .aligned.
TEST_F(MutantTest, LanesAtDifferentBarriers) {
  const auto text = [](const std::string& kind) {
    return ptx_header() +
           ".visible .entry k(.param .u64 to) {\n.reg .pred p;\n.reg .b32 i;\nmov.u32 i, %tid.x;\n"
           "and.b32 i, i, 31;\nsetp.ge.u32 p, i, 16;\n@p bra $other;\n" +
           kind + " 0, 32;\nret;\n$other:\n" + kind + " 1, 32;\nret;\n}\n";
  };
  EXPECT_EQ(run(load(text("barrier.sync"), "k"), 1, 64, 0, 0ull), CUDA_SUCCESS) << finding();
  EXPECT_EQ(run(load(text("bar.sync"), "k"), 1, 64, 0, 0ull), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(finding(), HasSubstr("barrier divergence: lanes of warp"));
}

TEST_F(MutantTest, FaultsOfTheHost) {
  CUdeviceptr p = upload(std::vector<int>(64));
  EXPECT_EQ(d.cuMemFree_v2(p), CUDA_SUCCESS);
  EXPECT_EQ(d.cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(finding(), HasSubstr("is freed twice"));
  EXPECT_EQ(d.cuMemFree_v2(p + 4), CUDA_ERROR_INVALID_VALUE);
  EXPECT_THAT(finding(), HasSubstr("is not the begin of an allocation"));
  std::vector<int> values(64);
  EXPECT_EQ(d.cuMemcpyDtoH_v2(values.data(), p, 256), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(finding(), HasSubstr("use after free"));
  EXPECT_EQ(d.cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS) << "sticky";
  TearDown();
  SetUp();
  p = upload(std::vector<int>(64));
  EXPECT_EQ(d.cuMemcpyHtoD_v2(p, values.data(), 260), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(finding(), HasSubstr("0 bytes after the end of the allocation of 256 bytes"));
  TearDown();
  EXPECT_THAT(finding(), HasSubstr("leak: 1 allocations of 256 bytes were not freed"));
  SetUp();
}

TEST_F(MutantTest, UseAfterFreeOnAStream) {
  CUstream one = nullptr;
  ASSERT_EQ(d.cuStreamCreateWithPriority(&one, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
  CUdeviceptr p = 0;
  ASSERT_EQ(d.cuMemAllocAsync(&p, 4096, one), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemFreeAsync(p, one), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemsetD8Async(p, 0, 16, one), CUDA_SUCCESS);
  EXPECT_EQ(d.cuStreamSynchronize(one), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(finding(), HasSubstr("use after free"));
}

TEST_F(MutantTest, UseAfterFreeBehindManyFrees) {
  CUdeviceptr first = 0;
  ASSERT_EQ(d.cuMemAllocAsync(&first, 1000, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(d.cuMemFreeAsync(first, nullptr), CUDA_SUCCESS);
  for (int i = 0; i < 5000; ++i) {
    CUdeviceptr p = 0;
    ASSERT_EQ(d.cuMemAllocAsync(&p, 1000, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(d.cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  }
  ASSERT_EQ(d.cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_NE(d.cuMemcpyHtoD_v2(first, "text", 4), CUDA_SUCCESS);
  EXPECT_THAT(finding(), HasSubstr("use after free"));
}

// Allocates 4 GiB in small pieces on a device of 512 MiB, so freed memory must be reused.
TEST_F(MutantTest, FreedMemoryIsUsedAgain) {
  for (int i = 0; i < 100000; ++i) {
    CUdeviceptr p = 0;
    ASSERT_EQ(d.cuMemAllocAsync(&p, 40960, nullptr), CUDA_SUCCESS) << i;
    ASSERT_EQ(d.cuMemFreeAsync(p, nullptr), CUDA_SUCCESS);
  }
  ASSERT_EQ(d.cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST_F(MutantTest, LaunchesAreChecked) {
  CUfunction f = load(kTree, "k");
  EXPECT_EQ(run(f, 1, 2048, 0, 0ull, 0ull, 0u), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(f, 0, 32, 0, 0ull, 0ull, 0u), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(run(f, 1, 32, 49 << 10, 0ull, 0ull, 0u), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10), CUDA_SUCCESS);
  EXPECT_EQ(d.cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 240 << 10),
            CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace collet::gpu::testing_only

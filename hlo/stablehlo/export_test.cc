// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

#include "hlo/eval/evaluator.h"
#include "hlo/stablehlo/bytecode.h"
#include "hlo/stablehlo/import.h"
#include "hlo/stablehlo/text.h"
#include "hlo/stablehlo/write.h"
#include "hlo/testing/golden.h"
#include "hlo/testing/random_module.h"
#include "hlo/text/parser.h"
#include "hlo/text/printer.h"
#include "hlo/verify/verify.h"

namespace collet::hlo {
namespace {

std::unique_ptr<Module> parse(std::string_view text) {
  auto module = parse_module(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return nullptr;
  const Status sound = verify_module(**module);
  EXPECT_TRUE(sound.ok()) << sound.to_string();
  return std::move(*module);
}

Expected<std::unique_ptr<Module>> by_text(const Module& module) {
  COLLET_ASSIGN(const std::string text, write_stablehlo_text(module));
  COLLET_ASSIGN(const std::unique_ptr<mlir::Program> program, mlir::read_text(text, "written"));
  return import_program(*program);
}

Expected<std::unique_ptr<Module>> by_artifact(const Module& module,
                                              std::string_view version = kDefaultArtifactVersion) {
  COLLET_ASSIGN(const std::string bytes, write_stablehlo_artifact(module, version));
  COLLET_ASSIGN(const std::unique_ptr<mlir::Program> program, mlir::read_bytecode(bytes));
  return import_program(*program);
}

/// Returns the module as text, with its entry renamed to the name that exports use.
std::string printed(const Module& module) {
  std::string text = print_module(module);
  const size_t entry = text.find("\nENTRY %");
  if (entry == std::string::npos) return text;
  const size_t begin = entry + 8;
  return text.replace(begin, text.find(' ', begin) - begin, "main");
}

TEST(Export, IsAsTheGoldenHasIt) {
  const std::string complaint =
      testing::check_golden("hlo/stablehlo/testdata/exported.golden", [](const testing::GoldenCase& golden) {
        auto module = parse(golden.input);
        return module ? write_stablehlo_text(*module) : Expected<std::string>(internal_error("no module"));
      });
  EXPECT_EQ(complaint, "");
}

TEST(Export, GoldenIsTheSameByTextAndByArtifact) {
  auto golden = testing::read_golden("hlo/stablehlo/testdata/exported.golden");
  ASSERT_TRUE(golden.ok());
  auto module = parse(golden->input);
  ASSERT_TRUE(module);
  auto text = by_text(*module), artifact = by_artifact(*module);
  ASSERT_TRUE(text.ok()) << text.status().to_string();
  ASSERT_TRUE(artifact.ok()) << artifact.status().to_string();
  EXPECT_EQ(printed(**text), printed(**artifact));
  const Status sound = verify_module(**text);
  EXPECT_TRUE(sound.ok()) << sound.to_string();
  // A second round trip changes nothing.
  auto again = by_text(**text);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(printed(**again), printed(**text));
  EXPECT_EQ((*text)->header().aliases.size(), 1u);
  EXPECT_EQ((*text)->header().donors.size(), 1u);
  const Extras* extras = (**text)[(*text)->entry_computation().parameters[0]].extras;
  ASSERT_TRUE(extras && extras->sharding);
  EXPECT_EQ(extras->sharding->to_string(), "{devices=[2]<=[2]}");
}

struct Refused {
  const char* name;
  const char* module;  ///< the instructions of the entry, or a whole module
  const char* complaint;
};

class ExportRefuses : public ::testing::TestWithParam<Refused> {};

TEST_P(ExportRefuses, NamesTheOpAndTheReason) {
  const std::string text = GetParam().module;
  auto module = parse(text.starts_with("HloModule") ? text : "HloModule m\nENTRY e {\n" + text + "\n}\n");
  ASSERT_TRUE(module);
  auto got = write_stablehlo_text(*module);
  ASSERT_FALSE(got.ok()) << *got;
  EXPECT_EQ(got.status().code(), Code::Unimplemented);
  EXPECT_NE(got.status().message().find(GetParam().complaint), std::string::npos) << got.status().to_string();
}

INSTANTIATE_TEST_SUITE_P(
    Ops, ExportRefuses,
    ::testing::Values(
        Refused{"stochastic",
                "x = f32[2] parameter(0)\n r = u32[2] parameter(1)\n ROOT c = bf16[2] stochastic-convert(x, r)",
                "line 5: stochastic-convert c cannot be written as StableHLO"},
        Refused{"state", "ROOT s = u64[2] rng-get-and-update-state(), delta=1", "rng-get-and-update-state s"},
        Refused{"bitcast", "x = f32[2,3]{1,0} parameter(0)\n ROOT b = f32[3,2]{0,1} bitcast(x)", "depends on layouts"},
        Refused{"one_bit", "ROOT x = s1[2] parameter(0)", "s1[2]"},
        Refused{"window",
                "x = f32[2] parameter(0)\n ROOT c = f32[2] custom-call(x), custom_call_target=\"t\", window={size=2}",
                "calls have no window"},
        Refused{"typed_call",
                "x = f32[2] parameter(0)\n ROOT c = f32[2] custom-call(x), custom_call_target=\"t\", "
                "api_version=API_VERSION_TYPED_FFI, backend_config=\"abc\"",
                "must be a dictionary"},
        Refused{"reversed_window",
                "HloModule m\nadd { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }\n"
                "ENTRY e { x = f32[4] parameter(0)  z = f32[] constant(0)\n"
                "ROOT w = f32[3] reduce-window(x, z), window={size=2 rhs_reversal=1}, to_apply=add }",
                "window is reversed"},
        Refused{"array_combiner",
                "HloModule m\nadd { a = s32[4] parameter(0)  b = s32[4] parameter(1)  ROOT c = s32[4] add(a, b) }\n"
                "ENTRY e { x = s32[4] parameter(0)\n"
                "ROOT r = s32[4] all-reduce(x), replica_groups={{0,1}}, to_apply=add }",
                "line 4: all-reduce r cannot be written as StableHLO: its computation takes not two scalars"}),
    [](const auto& test) { return std::string(test.param.name); });

/// Runs both modules on the same inputs; returns an empty text if all bits agree.
std::string difference(const Module& a, const Module& b, uint64_t seed) {
  std::vector<Literal> arguments;
  for (InstrId id : a.entry_computation().parameters) {
    Literal value = Literal::zeros(a[id].shape);
    for (int64_t i = 0; i < value.element_count(); ++i) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      const auto small = static_cast<int64_t>((seed >> 33) % 7) - (is_unsigned(value.type()) ? 0 : 3);
      if (is_float(value.type()) || is_complex(value.type()))
        value.set_double(i, static_cast<double>(small) / 4);
      else
        value.set_int(i, small);
    }
    arguments.push_back(std::move(value));
  }
  auto left = Evaluator(a).run(arguments), right = Evaluator(b).run(arguments);
  if (!left.ok()) return left.status().to_string();
  if (!right.ok()) return right.status().to_string();
  return *left == *right ? "" : "the results differ";
}

TEST(Export, RandomModulesMeanTheSame) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    auto module = parse(testing::random_module(seed));
    ASSERT_TRUE(module);
    auto text = by_text(*module), artifact = by_artifact(*module, seed % 2 ? "1.17.0" : "1.11.0");
    ASSERT_TRUE(text.ok()) << seed << ": " << text.status().to_string();
    ASSERT_TRUE(artifact.ok()) << seed << ": " << artifact.status().to_string();
    ASSERT_TRUE(verify_module(**text).ok()) << seed;
    EXPECT_EQ(difference(*module, **text, seed), "") << seed;
    EXPECT_EQ(difference(*module, **artifact, seed), "") << seed;
  }
}

TEST(Export, APermuteWithoutPairsStaysOne) {
  auto module = parse(R"(
HloModule m, num_partitions=2
ENTRY e {
  p = u32[2] parameter(0)
  ROOT r = u32[2] collective-permute(p), source_target_pairs={}
})");
  ASSERT_TRUE(module);
  const auto back = by_text(*module);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  const auto& root = (**back)[(*back)->entry_computation().root];
  EXPECT_EQ(root.op, Op::COLLECTIVE_PERMUTE);
}

TEST(Export, AllToAllWithoutGroupsListsItsParticipants) {
  for (const bool channel : {false, true}) {
    const auto module = parse("HloModule m, replica_count=2, num_partitions=4\nENTRY e {\n  b = u32[4] parameter(0)\n" +
                              std::string("  ROOT a = u32[4] all-to-all(b), dimensions={0}") +
                              (channel ? ", channel_id=1" : "") + "\n}\n");
    ASSERT_TRUE(module);
    const auto again = by_text(*module);
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    const Status sound = verify_module(**again);
    EXPECT_TRUE(sound.ok()) << sound.to_string();
    const std::string groups = channel ? "replica_groups={{0,1,2,3}}" : "replica_groups={{0,1}}";
    EXPECT_NE(print_module(**again).find(groups), std::string::npos) << print_module(**again);
  }
}

TEST(Export, BranchesThatDoubleAreRefused) {
  const auto levels = [](int n) {
    std::string text =
        "HloModule m\nc0 {\n  p = (pred[], s32[]) parameter(0)\n  ROOT x = s32[] get-tuple-element(p), index=1\n}\n";
    for (int i = 1; i <= n; ++i) {
      const std::string callee = "c" + std::to_string(i - 1);
      text += (i == n ? "ENTRY c" : "c") + std::to_string(i) +
              " {\n  p = (pred[], s32[]) parameter(0)\n  q = pred[] get-tuple-element(p), index=0\n"
              "  ROOT x = s32[] conditional(q, p, p), true_computation=" +
              callee + ", false_computation=" + callee + "\n}\n";
    }
    return parse(text);
  };
  EXPECT_TRUE(write_stablehlo_text(*levels(8)).ok());
  const auto large = write_stablehlo_text(*levels(60));
  ASSERT_FALSE(large.ok());
  EXPECT_EQ(large.status().code(), Code::ResourceExhausted) << large.status().to_string();
}

TEST(Export, LayoutsComeBack) {
  const auto module =
      parse(R"(HloModule m, entry_computation_layout={(f32[2,3]{0,1}, s32[])->(f32[2,3]{0,1}, f32[4]{0})}

ENTRY main {
  x = f32[2,3] parameter(0)
  s = s32[] parameter(1)
  ROOT f = (f32[2,3]{0,1}, f32[4]{0}) custom-call(x, s), custom_call_target="f", operand_layout_constraints={f32[2,3]{0,1}, s32[]}
}
)");
  ASSERT_TRUE(module);
  for (const auto& again : {by_text(*module), by_artifact(*module)}) {
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    const std::string text = print_module(**again);
    EXPECT_NE(text.find("entry_computation_layout={(f32[2,3]{0,1}, s32[])->(f32[2,3]{0,1}, f32[4])}"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("(f32[2,3]{0,1}, f32[4]{0}) custom-call("), std::string::npos) << text;
    EXPECT_NE(text.find("operand_layout_constraints={f32[2,3]{0,1}, s32[]}"), std::string::npos) << text;
  }
}

TEST(Export, TransfersKeepTheirPairsAndTheirOrder) {
  auto module = parse(R"(
HloModule m, num_partitions=2
ENTRY e {
  p = u32[] partition-id()
  t = token[] after-all()
  r = (u32[], u32[], token[]) recv(t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{1,0}}"}
  s = (u32[], u32[], token[]) send(p, t), channel_id=1, frontend_attributes={_xla_send_recv_source_target_pairs="{{1,0}}"}
  sd = token[] send-done(s), channel_id=1
  rd = (u32[], token[]) recv-done(r), channel_id=1
  ROOT x = u32[] get-tuple-element(rd), index=0
})");
  ASSERT_TRUE(module);
  auto back = by_text(*module);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EvalOptions options;
  options.partitions = 2;
  const std::vector<std::vector<Literal>> none(2);
  auto direct = Evaluator(*module, options).run_all(none), again = Evaluator(**back, options).run_all(none);
  ASSERT_TRUE(direct.ok()) << direct.status().to_string();
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ((*direct)[0].as_int(0), 1);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE((*direct)[i] == (*again)[i]) << i;
}

std::string read_all(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

/// Writes a module as text and as artifact. Both must be read as the same module, and a second round trip must change nothing.
void check_one(const std::string& name, std::string_view bytes) {
  auto program = mlir::is_bytecode(bytes) ? mlir::read_bytecode(bytes) : mlir::read_text(bytes, name);
  ASSERT_TRUE(program.ok()) << name << ": " << program.status().to_string();
  ImportOptions options;
  const std::vector<std::string_view> tests = functions_without_arguments(**program);
  if (tests.size() > 1) options.entry = tests.front();
  auto module = import_program(**program, options);
  ASSERT_TRUE(module.ok()) << name << ": " << module.status().to_string();
  auto text = by_text(**module), artifact = by_artifact(**module);
  ASSERT_TRUE(text.ok()) << name << ": " << text.status().to_string();
  ASSERT_TRUE(artifact.ok()) << name << ": " << artifact.status().to_string();
  // The first round trip may add instructions, such as elements of a loop's result that have no user, so the comparison is of
  // the first round trip with the second.
  auto again = by_text(**text);
  ASSERT_TRUE(again.ok()) << name << ": " << again.status().to_string();
  EXPECT_EQ(printed(**again), printed(**text)) << name;
  EXPECT_EQ(printed(**artifact), printed(**text)) << name;
}

TEST(ExportCorpus, ComesBackEqual) {
  const char* corpus = std::getenv("COLLET_CORPUS_DIR");
  if (!corpus) {
    const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
    ASSERT_FALSE(required && *required == '1') << "the corpus is required and COLLET_CORPUS_DIR is not set";
    GTEST_SKIP() << "without COLLET_CORPUS_DIR 2,940 programs were not written";
  }
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(corpus) + "/stablehlo-testdata")) {
    const std::string bytes = read_all(entry.path());
    std::vector<std::string_view> pieces{bytes};
    if (!mlir::is_bytecode(bytes)) pieces = mlir::split_programs(bytes);
    for (std::string_view piece : pieces) check_one(entry.path().filename(), piece);
    ++files;
  }
  std::cout << files << " files written and read\n";
  EXPECT_GE(files, 2940);
}

}  // namespace
}  // namespace collet::hlo

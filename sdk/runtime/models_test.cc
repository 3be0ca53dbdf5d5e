// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hlo/testing/corpus.h"
#include "sdk/runtime/testing/session.h"

// Runs real programs on backends that support few or no ops; the fallback runs the rest.
//
//   sdk_models_test BACKEND [MODEL]

namespace collet::testing {
namespace {

using hlo::testing::ModelCase;
using hlo::testing::ModelOutput;

// Models with few ops and little data, for every test run.
constexpr const char* kSmall[] = {
    "attention",  "black_scholes", "cholesky_solve",     "conv_variants",     "embedding_grad", "fourier",
    "fp8_dense",  "game_of_life",  "int8_dense",         "lstm_forward",      "mlp_adam_train", "mnist_softmax_train",
    "pool_grads", "softmax",       "softmax_relu_dense", "sort_argsort_topk", "switch_cond",    "tf_while_autograph"};

std::string backend_name, only_model;

double step_at(double magnitude, hlo::Type type) {
  const int digits = type == hlo::Type::F64 || type == hlo::Type::C128 ? 52
                     : type == hlo::Type::BF16                         ? 7
                     : type == hlo::Type::F16                          ? 10
                                                                       : 23;
  return magnitude > 0 ? std::ldexp(1.0, std::ilogb(magnitude) - digits) : 0;
}

std::string compare(const ModelOutput& want, const std::vector<char>& bytes) {
  const hlo::Literal got = hlo::Literal::from_bytes(want.shape, bytes.data());
  const double bound =
      want.exact ? 0 : std::max(4 * want.xla_max_abs_error, 8 * step_at(want.max_abs, want.shape.type()));
  double worst = 0;
  for (int64_t i = 0; i < want.count; ++i) {
    const double a = got.as_double(i * want.stride), b = want.sample.as_double(i);
    const double x = got.imaginary(i * want.stride), y = want.sample.imaginary(i);
    if (std::isnan(a) != std::isnan(b)) return "NaN in another place";
    if (std::isnan(a) || (a == b && x == y)) continue;
    worst = std::max(worst, std::hypot(a - b, x - y));
  }
  if (worst <= bound) return {};
  std::ostringstream out;
  out << "off by " << worst << ", allowed are " << bound << " (largest " << want.max_abs << ")";
  return out.str();
}

class Models : public ::testing::Test, public Session {
 protected:
  void run_model(const std::string& folder) {
    auto model = hlo::testing::read_model(folder);
    ASSERT_TRUE(model.ok()) << model.status().to_string();
    std::ifstream file(model->program);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    const ModulePtr module = read(text, COLLET_ELIDED_COUNTER);
    ASSERT_TRUE(module) << failure.message;
    const ExecutablePtr e = compile(client_.get(), module.get());
    ASSERT_TRUE(e) << failure.message;
    std::vector<BufferPtr> in;
    for (const hlo::Literal& literal : hlo::testing::model_inputs(model->inputs, false))
      in.push_back(upload(client_.get(), collet_module_parameter(module.get(), static_cast<uint32_t>(in.size())),
                          literal.bytes()));
    const auto out = run(e.get(), in);
    ASSERT_EQ(failure.code, COLLET_OK) << failure.message;
    ASSERT_EQ(out.size(), model->outputs.size());
    for (size_t i = 0; i < out.size(); ++i) {
      const std::vector<char> bytes = download<char>(out[i]);
      ASSERT_EQ(failure.code, COLLET_OK) << failure.message;
      EXPECT_EQ(compare(model->outputs[i], bytes), "") << "output " << i;
    }
    const collet_executable_facts f = facts(e.get());
    on_device_ += f.device_ops;
    std::printf("%-28s %4u ops on the device, %4u on the fallback, %3u by the runtime, %9llu bytes cross\n",
                model->name.c_str(), f.device_ops, f.fallback_ops, f.host_ops,
                static_cast<unsigned long long>(f.crossing_bytes));
  }

  ClientPtr client_;
  uint64_t on_device_ = 0;
};

TEST_F(Models, GiveTheKnownResults) {
  const char* corpus = std::getenv("COLLET_CORPUS_DIR");
  if (!corpus) {
    const char* required = std::getenv("COLLET_REQUIRE_CORPUS");
    ASSERT_FALSE(required && *required == '1') << "COLLET_CORPUS_DIR is not set";
    GTEST_SKIP() << "no corpus: " << std::size(kSmall) << " cases did not run";
  }
  const char* fallback = std::getenv("COLLET_TEST_FALLBACK");
  client_ = open(test_backend(backend_name), fallback ? fallback : "interpreter");
  ASSERT_TRUE(client_) << failure.message;
  std::vector<std::string> folders;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(corpus) / "models")) {
    const std::string name = entry.path().filename().string();
    const bool small = std::find(std::begin(kSmall), std::end(kSmall), name) != std::end(kSmall);
    if (only_model.empty() ? small : only_model == name) folders.push_back(entry.path().string());
  }
  std::sort(folders.begin(), folders.end());
  ASSERT_FALSE(folders.empty());
  for (const std::string& folder : folders) {
    SCOPED_TRACE(folder);
    run_model(folder);
  }
  if (backend_name == "memory_only")
    EXPECT_EQ(on_device_, 0u);
  else
    EXPECT_GT(on_device_, 0u);
}

}  // namespace
}  // namespace collet::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: %s BACKEND [MODEL]\n", argv[0]);
    return 2;
  }
  collet::testing::backend_name = argv[1];
  if (argc == 3) collet::testing::only_model = argv[2];
  return RUN_ALL_TESTS();
}

// SPDX-License-Identifier: Apache-2.0
// Tests random bits, Fourier transforms, matrix factorizations, batch norms, custom calls, host queues and groups of
// participants.
#include <mutex>

#include "hlo/eval/text_modules_test.h"

namespace collet::hlo {
namespace {

using testing::evaluate_text;
using testing::expect_same;
using testing::expect_value;
using testing::value;

void expect_near(const Literal& got, const Literal& expected, double tolerance) {
  ASSERT_TRUE(got.shape().compatible(expected.shape())) << got.shape().to_string();
  for (int64_t i = 0; i < expected.element_count(); ++i) {
    EXPECT_NEAR(got.as_double(i), expected.as_double(i), tolerance) << "element " << i;
    EXPECT_NEAR(got.imaginary(i), expected.imaginary(i), tolerance) << "element " << i;
  }
}

Literal run(const std::string& body, const std::string& before = {}) {
  auto got = evaluate_text("HloModule m\n" + before + "\nENTRY e {\n" + body + "\n}\n");
  EXPECT_TRUE(got.ok()) << got.status().to_string() << '\n' << body;
  return got.ok() ? *got : Literal();
}

TEST(Random, Threefry) {
  const Literal one =
      run("s = u64[2] constant({3, 3})\n"
          "ROOT r = (u64[2], u64[]) rng-bit-generator(s), algorithm=rng_three_fry");
  expect_same(one.element(0), value("u64[2]", "{3, 4}"));
  expect_same(one.element(1), value("u64[]", "3349939604322698703"));
  // For 32-bit words, the two halves of counter j are elements 2j and 2j + 1.
  const Literal words =
      run("s = u64[2] constant({3, 3})\n"
          "ROOT r = (u64[2], u32[2]) rng-bit-generator(s), algorithm=rng_three_fry");
  EXPECT_EQ(static_cast<uint64_t>(words.element(1).as_int(0)), 3349939604322698703u & 0xFFFFFFFFu);
  EXPECT_EQ(static_cast<uint64_t>(words.element(1).as_int(1)), 3349939604322698703u >> 32);
  expect_same(words.element(0), value("u64[2]", "{3, 4}"));
}

TEST(Random, Philox) {
  const Literal zero =
      run("s = u64[3] constant({0, 0, 0})\n"
          "ROOT r = (u64[3], u32[5]) rng-bit-generator(s), algorithm=rng_philox");
  const uint32_t expected[] = {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(static_cast<uint32_t>(zero.element(1).as_int(i)), expected[i]);
  expect_same(zero.element(0), value("u64[3]", "{0, 2, 0}"));
}

TEST(Random, UniformStaysInRange) {
  const Literal u =
      run("a = f32[] constant(-2)\nb = f32[] constant(3)\n"
          "ROOT r = f32[2000] rng(a, b), distribution=rng_uniform");
  double sum = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    EXPECT_GE(u.as_double(i), -2);
    EXPECT_LT(u.as_double(i), 3);
    sum += u.as_double(i);
  }
  EXPECT_NEAR(sum / 2000, 0.5, 0.15);
  const Literal n =
      run("a = f64[] constant(1)\nb = f64[] constant(2)\n"
          "ROOT r = f64[4001] rng(a, b), distribution=rng_normal");
  double mean = 0, square = 0;
  for (int64_t i = 0; i < 4001; ++i) mean += n.as_double(i) / 4001;
  for (int64_t i = 0; i < 4001; ++i) square += (n.as_double(i) - mean) * (n.as_double(i) - mean) / 4001;
  EXPECT_NEAR(mean, 1, 0.2);
  EXPECT_NEAR(square, 4, 0.4);
}

TEST(Fft, KnownTransforms) {
  expect_value(
      "a = c64[4] constant({(1, 0), (2, 0), (3, 0), (4, 0)})\nROOT r = c64[4] fft(a), fft_type=FFT, fft_length={4}",
      "c64[4]", "{(10, 0), (-2, 2), (-2, 0), (-2, -2)}");
  expect_near(run("a = f64[3] constant({1, 2, 4})\nROOT r = c128[2] fft(a), fft_type=RFFT, fft_length={3}"),
              value("c128[2]", "{(7, 0), (-2, 1.7320508075688772)}"), 1e-15);
  expect_near(run("a = c64[3] constant({(10, 5), (-2, 2), (-2, 7)})\n"
                  "ROOT r = f32[4] fft(a), fft_type=IRFFT, fft_length={4}"),
              value("f32[4]", "{1, 2, 3, 4}"), 1e-6);
}

// Transforms of any length: compares with the definition, and with the inverse of the transform.
TEST(Fft, GoesThereAndBack) {
  for (int n : {1, 2, 6, 31, 64, 67, 97, 360, 509, 1018}) {
    const std::string s = std::to_string(n);
    const Literal back =
        run("i = f64[" + s + "] iota(), iota_dimension=0\nx = f64[" + s + "] sine(i)\nz = c128[" + s +
            "] complex(x, i)\nf = c128[" + s + "] fft(z), fft_type=FFT, fft_length={" + s + "}\ng = c128[" + s +
            "] fft(f), fft_type=IFFT, fft_length={" + s + "}\nROOT d = c128[" + s + "] subtract(g, z)");
    expect_near(back, Literal::zeros(back.shape()), 1e-12);
    const Literal sums =
        run("i = f64[" + s + "] iota(), iota_dimension=0\nx = f64[" + s + "] cosine(i)\nROOT f = c128[" +
            std::to_string(n / 2 + 1) + "] fft(x), fft_type=RFFT, fft_length={" + s + "}");
    for (int64_t k = 0; k < n / 2 + 1; ++k) {
      long double re = 0, im = 0;
      for (int64_t j = 0; j < n; ++j) {
        const long double angle = -2 * 3.14159265358979323846264338L * static_cast<long double>(j * k % n) / n;
        re += std::cos(static_cast<long double>(j)) * std::cos(angle);
        im += std::cos(static_cast<long double>(j)) * std::sin(angle);
      }
      EXPECT_NEAR(sums.as_double(k), static_cast<double>(re), 1e-12) << n;
      EXPECT_NEAR(sums.imaginary(k), static_cast<double>(im), 1e-12) << n;
    }
  }
}

TEST(Fft, TwoDimensions) {
  expect_near(run("a = f32[2,2] constant({{1, 2}, {3, 4}})\nf = c64[2,2] fft(a), fft_type=RFFT, fft_length={2,2}\n"
                  "ROOT r = f32[2,2] fft(f), fft_type=IRFFT, fft_length={2,2}"),
              value("f32[2,2]", "{{1, 2}, {3, 4}}"), 1e-6);
}

TEST(Factors, Cholesky) {
  expect_value("a = f64[2,2] constant({{4, 99}, {2, 5}})\nROOT r = f64[2,2] cholesky(a), lower=true", "f64[2,2]",
               "{{2, 0}, {1, 2}}");
  expect_value("a = f32[2,2] constant({{4, 2}, {99, 5}})\nROOT r = f32[2,2] cholesky(a)", "f32[2,2]",
               "{{2, 1}, {0, 2}}");
  expect_value("a = c64[2,2] constant({{(4, 0), (0, 0)}, {(0, 2), (5, 0)}})\nROOT r = c64[2,2] cholesky(a), lower=true",
               "c64[2,2]", "{{(2, 0), (0, 0)}, {(0, 1), (2, 0)}}");
  const Literal bad = run("a = f32[1,1] constant({{-1}})\nROOT r = f32[1,1] cholesky(a), lower=true");
  EXPECT_TRUE(std::isnan(bad.as_double(0)));
}

TEST(Factors, TriangularSolve) {
  const std::string ab = "a = f64[2,2] constant({{2, 3}, {1, 4}})\nb = f64[2,1] constant({{4}, {10}})\n";
  expect_value(ab + "ROOT r = f64[2,1] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
               "f64[2,1]", "{{2}, {2}}");
  expect_value(ab + "ROOT r = f64[2,1] triangular-solve(a, b), left_side=true, lower=false, transpose_a=NO_TRANSPOSE",
               "f64[2,1]", "{{-1.75}, {2.5}}");
  expect_value(ab + "ROOT r = f64[2,1] triangular-solve(a, b), left_side=true, lower=true, transpose_a=TRANSPOSE",
               "f64[2,1]", "{{0.75}, {2.5}}");
  expect_value(ab + "ROOT r = f64[2,1] triangular-solve(a, b), left_side=true, lower=true, unit_diagonal=true, "
                    "transpose_a=NO_TRANSPOSE",
               "f64[2,1]", "{{4}, {6}}");
  expect_value(
      "a = f64[2,2] constant({{2, 3}, {1, 4}})\nb = f64[1,2] constant({{4, 8}})\n"
      "ROOT r = f64[1,2] triangular-solve(a, b), left_side=false, lower=true, transpose_a=NO_TRANSPOSE",
      "f64[1,2]", "{{1, 2}}");
}

TEST(BatchNorm, TrainingAndInference) {
  const std::string x =
      "x = f32[2,2] constant({{1, 10}, {3, 30}})\ns = f32[2] constant({2, 1})\n"
      "o = f32[2] constant({5, 0})\n";
  const Literal t =
      run(x + "ROOT r = (f32[2,2], f32[2], f32[2]) batch-norm-training(x, s, o), epsilon=0, feature_index=1");
  expect_near(t.element(0), value("f32[2,2]", "{{3, -1}, {7, 1}}"), 0);
  expect_near(t.element(1), value("f32[2]", "{2, 20}"), 0);
  expect_near(t.element(2), value("f32[2]", "{1, 100}"), 0);
  expect_value(x + "m = f32[2] constant({1, 0})\nv = f32[2] constant({4, 25})\n"
                   "ROOT r = f32[2,2] batch-norm-inference(x, s, o, m, v), epsilon=0, feature_index=1",
               "f32[2,2]", "{{5, 2}, {7, 6}}");
}

// Compares the gradient with finite differences of the training op's output, weighted by dy.
TEST(BatchNorm, Gradient) {
  const std::string rest =
      "s = f64[1] constant({1.5})\nm = f64[1] constant({2})\nv = f64[1] constant({4.6666666666666667})\n"
      "g = f64[3,1] constant({{1}, {2}, {-1}})\n";
  const Literal d =
      run("x = f64[3,1] constant({{1}, {0}, {5}})\n" + rest +
          "ROOT r = (f64[3,1], f64[1], f64[1]) batch-norm-grad(x, s, m, v, g), epsilon=0, feature_index=1");
  const auto loss = [](double a, double b, double c) {
    const double mean = (a + b + c) / 3;
    const double variance = ((a - mean) * (a - mean) + (b - mean) * (b - mean) + (c - mean) * (c - mean)) / 3;
    return 1.5 / std::sqrt(variance) * ((a - mean) + 2 * (b - mean) - (c - mean));
  };
  const double h = 1e-5;
  EXPECT_NEAR(d.element(0).as_double(0), (loss(1 + h, 0, 5) - loss(1 - h, 0, 5)) / (2 * h), 1e-8);
  EXPECT_NEAR(d.element(0).as_double(1), (loss(1, h, 5) - loss(1, -h, 5)) / (2 * h), 1e-8);
  EXPECT_NEAR(d.element(0).as_double(2), (loss(1, 0, 5 + h) - loss(1, 0, 5 - h)) / (2 * h), 1e-8);
  EXPECT_NEAR(d.element(1).as_double(0), loss(1, 0, 5) / 1.5, 1e-12);
  EXPECT_NEAR(d.element(2).as_double(0), 2, 1e-12);
}

TEST(CustomCalls, KnownAndUnknown) {
  const Literal qr =
      run("a = f64[3,2] constant({{1, 2}, {3, 4}, {5, 7}})\n"
          "ROOT r = (f64[3,2], f64[2]) custom-call(a), custom_call_target=\"Qr\"");
  // The product Q R must be the matrix: R is the upper triangle, Q is computed from the reflectors.
  auto product = evaluate_text(
      "HloModule m\nENTRY e {\n p = f64[3,2] parameter(0)\n t = f64[2] parameter(1)\n"
      " q = f64[3,2] custom-call(p, t), custom_call_target=\"ProductOfElementaryHouseholderReflectors\"\n"
      " s = f64[2,2] slice(p), slice={[0:2], [0:2]}\n i = s32[2,2] iota(), iota_dimension=0\n"
      " j = s32[2,2] iota(), iota_dimension=1\n c = pred[2,2] compare(i, j), direction=LE\n z = f64[] constant(0)\n"
      " b = f64[2,2] broadcast(z), dimensions={}\n u = f64[2,2] select(c, s, b)\n"
      " ROOT r = f64[3,2] dot(q, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n",
      {qr.element(0), qr.element(1)});
  ASSERT_TRUE(product.ok()) << product.status().to_string();
  expect_near(*product, value("f64[3,2]", "{{1, 2}, {3, 4}, {5, 7}}"), 1e-14);

  const Literal eigh =
      run("a = c128[2,2] constant({{(2, 0), (0, 1)}, {(0, -1), (2, 0)}})\n"
          "ROOT r = (c128[2,2], f64[2]) custom-call(a), custom_call_target=\"Eigh\"");
  expect_near(eigh.element(1), value("f64[2]", "{1, 3}"), 1e-14);

  // Custom calls whose operands and results do not have the shapes that their targets demand.
  const std::pair<const char*, const char*> wrong[] = {
      {"(f64[3,2], f64[3]) custom-call(a), custom_call_target=\"Qr\"",
       "'Qr' of f64[3,2] gives (f64[3,2], f64[2]), not"},
      {"(f64[3,2], f32[2]) custom-call(a), custom_call_target=\"Qr\"", "gives (f64[3,2], f64[2])"},
      {"f64[9] custom-call(a), custom_call_target=\"Qr\"", "gives (f64[3,2], f64[2])"},
      {"f64[3] custom-call(a), custom_call_target=\"AllocateBuffer\"", "takes no operands, but has 1"},
      {"(f64[3,2], f64[2]) custom-call(a, a), custom_call_target=\"Qr\"", "takes 1 operand, but has 2"},
      {"(f64[3,2], f64[2]) custom-call(i), custom_call_target=\"Qr\"", "takes matrices of float or complex numbers"},
      {"(f64[3,2], f64[3]) custom-call(a), custom_call_target=\"Eigh\"", "takes square matrices"},
      {"f64[3,2] custom-call(a, i), custom_call_target=\"ProductOfElementaryHouseholderReflectors\"", "takes a factor"},
      {"f64[9,2] custom-call(a, t), custom_call_target=\"ProductOfElementaryHouseholderReflectors\"", "gives f64[3,2]"},
      {"(f64[3,3], s32[3,3]) custom-call(a), custom_call_target=\"TopK\"", "gives (f64[3,2], s32[3,2])"},
      {"(f16[3,1], s32[3,1]) custom-call(a), custom_call_target=\"TopK\"", "gives (f64[3,1], s32[3,1])"},
      {"(f64[3,1], f32[3,1]) custom-call(a), custom_call_target=\"TopK\"", "gives (f64[3,1], s32[3,1])"}};
  for (const auto& [call, complaint] : wrong) {
    auto refused = evaluate_text(
        "HloModule m\nENTRY e {\n a = f64[3,2] constant({{1, 2}, {3, 4}, {5, 7}})\n"
        " i = s32[3,2] iota(), iota_dimension=0\n t = f64[2] constant({1, 2})\n ROOT r = " +
        std::string(call) + "\n}\n");
    ASSERT_FALSE(refused.ok()) << call;
    EXPECT_NE(refused.status().message().find(complaint), std::string::npos) << refused.status().to_string();
  }

  auto unknown =
      evaluate_text("HloModule m\nENTRY e {\n ROOT r = f32[] custom-call(), custom_call_target=\"nobody\"\n}\n");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), Code::Unimplemented);
  EXPECT_NE(unknown.status().message().find("nobody"), std::string::npos);

  EvalOptions options;
  options.custom_calls["seven"] = [](const Module&, const Instruction&, std::span<const Literal>) -> Expected<Literal> {
    return Literal::scalar(Type::F32, 7);
  };
  auto seven = evaluate_text("HloModule m\nENTRY e {\n ROOT r = f32[] custom-call(), custom_call_target=\"seven\"\n}\n",
                             {}, options);
  ASSERT_TRUE(seven.ok());
  EXPECT_EQ(seven->as_double(0), 7);
}

TEST(Queues, InfeedAndOutfeed) {
  EvalOptions options;
  std::vector<int64_t> seen;
  options.infeed = [](const Shape& shape) -> Expected<Literal> {
    Literal value = Literal::zeros(shape);
    value.set_int(0, 41);
    return value;
  };
  options.outfeed = [&seen](const Literal& value) {
    seen.push_back(value.as_int(0));
    return ok_status();
  };
  auto result = evaluate_text(
      "HloModule m\nENTRY e {\n t = token[] after-all()\n i = (s32[], token[]) infeed(t)\n"
      " v = s32[] get-tuple-element(i), index=0\n o = s32[] add(v, v)\n u = token[] get-tuple-element(i), index=1\n"
      " x = token[] outfeed(o, u), outfeed_shape=s32[]\n ROOT r = s32[] negate(v)\n}\n",
      {}, options);
  ASSERT_TRUE(result.ok()) << result.status().to_string();
  EXPECT_EQ(result->as_int(0), -41);
  EXPECT_EQ(seen, std::vector<int64_t>{82});
}

/// Returns each participant's result of a module whose body starts from u, a u32[4] filled with 10 * (number of the
/// participant) + 1.
std::vector<Literal> run_group(int64_t replicas, int64_t partitions, const std::string& body) {
  const std::string text =
      "HloModule m, replica_count=" + std::to_string(replicas) + ", num_partitions=" + std::to_string(partitions) +
      "\nsum {\n x = u32[] parameter(0)\n y = u32[] parameter(1)\n ROOT r = u32[] add(x, y)\n}\nENTRY e {\n"
      " u = u32[4] parameter(0)\n " +
      body + "\n}\n";
  auto module = parse_module(text);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  if (!module.ok()) return {};
  EvalOptions options;
  options.replicas = replicas;
  options.partitions = partitions;
  std::vector<std::vector<Literal>> arguments;
  for (int64_t p = 0; p < replicas * partitions; ++p) {
    Literal u = Literal::zeros(Shape::array(Type::U32, {4}));
    for (int64_t i = 0; i < 4; ++i) u.set_int(i, 10 * p + i);
    arguments.push_back({u});
  }
  auto results = Evaluator(**module, options).run_all(arguments);
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  return results.ok() ? *results : std::vector<Literal>();
}

std::vector<int64_t> ints(const Literal& value) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < value.element_count(); ++i) out.push_back(value.as_int(i));
  return out;
}

using Lists = std::vector<std::vector<int64_t>>;

void expect_group(int64_t replicas, int64_t partitions, const std::string& body, const Lists& expected) {
  SCOPED_TRACE(body);
  const auto results = run_group(replicas, partitions, body);
  ASSERT_EQ(results.size(), expected.size());
  for (size_t p = 0; p < results.size(); ++p) EXPECT_EQ(ints(results[p]), expected[p]) << "participant " << p;
}

TEST(Groups, AllReduceInEachMode) {
  // Participants as (replica, partition): 0 = (0,0), 1 = (0,1), 2 = (1,0), 3 = (1,1); the elements of each
  // participant's u are 10 times its number, plus 1.
  expect_group(2, 2,
               "r = u32[4] all-reduce(u), replica_groups={}, to_apply=sum\n ROOT s = u32[1] slice(r), slice={[0:1]}",
               {{20}, {40}, {20}, {40}});
  expect_group(2, 2,
               "r = u32[4] all-reduce(u), replica_groups={{0},{1}}, channel_id=1, to_apply=sum\n"
               " ROOT s = u32[1] slice(r), slice={[0:1]}",
               {{10}, {10}, {50}, {50}});
  expect_group(2, 2,
               "r = u32[4] all-reduce(u), replica_groups={{0,3},{1,2}}, channel_id=1, use_global_device_ids=true, "
               "to_apply=sum\n ROOT s = u32[1] slice(r), slice={[0:1]}",
               {{30}, {30}, {30}, {30}});
}

TEST(Groups, GatherScatterAndExchange) {
  expect_group(2, 1,
               "s = u32[1] slice(u), slice={[1:2]}\n ROOT r = u32[2] all-gather(s), dimensions={0}, replica_groups={}",
               {{1, 11}, {1, 11}});
  expect_group(2, 1, "ROOT r = u32[2] reduce-scatter(u), dimensions={0}, replica_groups={}, to_apply=sum",
               {{10, 12}, {14, 16}});
  expect_group(2, 1, "ROOT r = u32[4] all-to-all(u), dimensions={0}, replica_groups={}",
               {{0, 1, 10, 11}, {2, 3, 12, 13}});
  expect_group(3, 1, "ROOT r = u32[4] collective-permute(u), source_target_pairs={{0,1},{1,2}}",
               {{0, 0, 0, 0}, {0, 1, 2, 3}, {10, 11, 12, 13}});
  expect_group(3, 1, "ROOT r = u32[4] collective-broadcast(u), replica_groups={{2,0}}",
               {{20, 21, 22, 23}, {0, 0, 0, 0}, {20, 21, 22, 23}});
  expect_group(2, 1,
               "s = u32[4] all-reduce-start(u), replica_groups={}, to_apply=sum\n ROOT r = u32[4] all-reduce-done(s)",
               {{10, 12, 14, 16}, {10, 12, 14, 16}});
  expect_group(1, 3, "p = u32[] partition-id()\n ROOT r = u32[1] reshape(p)", {{0}, {1}, {2}});
}

TEST(Groups, MayWidenTheElements) {
  expect_value("a = bf16[2] constant({1.5, 2})\nROOT r = f32[2] all-reduce(a), replica_groups={{0},{1}}, to_apply=sum",
               "f32[2]", "{1.5, 2}",
               "sum {\n x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT r = f32[] add(x, y)\n}\n");
}

TEST(Groups, SendAndReceive) {
  const std::string pairs =
      ", channel_id=3, frontend_attributes={_xla_send_recv_source_target_pairs=\"{{0,1},{1,0}}\"}";
  expect_group(2, 1,
               "t = token[] after-all()\n v = (u32[4], u32[], token[]) recv(t)" + pairs +
                   "\n s = (u32[4], u32[], token[]) send(u, t)" + pairs +
                   "\n d = (u32[4], token[]) recv-done(v), channel_id=3\n e = token[] send-done(s), channel_id=3\n"
                   " ROOT r = u32[4] get-tuple-element(d), index=0",
               {{10, 11, 12, 13}, {0, 1, 2, 3}});
}

TEST(Groups, NobodyWaitsForEver) {
  auto module = parse_module(
      "HloModule m, replica_count=2\nsum {\n x = u32[] parameter(0)\n y = u32[] parameter(1)\n ROOT r = u32[] add(x, "
      "y)\n}\n"
      "a {\n x = u32[] parameter(0)\n ROOT r = u32[] all-reduce(x), replica_groups={}, to_apply=sum\n}\n"
      "b {\n x = u32[] parameter(0)\n ROOT r = u32[] copy(x)\n}\n"
      "ENTRY e {\n i = u32[] replica-id()\n s = s32[] convert(i)\n"
      " ROOT r = u32[] conditional(s, i, i), branch_computations={a, b}\n}\n");
  ASSERT_TRUE(module.ok()) << module.status().to_string();
  EvalOptions options;
  options.replicas = 2;
  auto result = Evaluator(**module, options).run({});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.status().code(), Code::FailedPrecondition);
}

TEST(Asynchronous, RunsAtTheStart) {
  expect_value(
      "a = s32[2] constant({1, 2})\n"
      "s = ((s32[2]), s32[2], u32[]) async-start(a), calls=twice\n"
      "u = ((s32[2]), s32[2], u32[]) async-update(s)\nROOT d = s32[2] async-done(u)",
      "s32[2]", "{2, 4}", "twice {\n x = s32[2] parameter(0)\n ROOT r = s32[2] add(x, x)\n}\n");
  expect_value("a = s32[2] constant({1, 2})\ns = (s32[2], s32[2], u32[]) copy-start(a)\nROOT d = s32[2] copy-done(s)",
               "s32[2]", "{1, 2}");
}

TEST(Loops, ThatStandStillEnd) {
  expect_value("z = s32[] constant(5)\nROOT w = s32[] while(z), condition=always, body=same", "s32[]", "5",
               "always {\n x = s32[] parameter(0)\n ROOT r = pred[] constant(true)\n}\n"
               "same {\n x = s32[] parameter(0)\n ROOT r = s32[] copy(x)\n}\n");
}

}  // namespace
}  // namespace collet::hlo

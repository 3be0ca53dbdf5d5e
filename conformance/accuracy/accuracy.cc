// SPDX-License-Identifier: Apache-2.0
#include "conformance/accuracy/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "conformance/accuracy/reference.h"
#include "conformance/accuracy/ruler.h"
#include "conformance/oracle/functions.h"
#include "hlo/base/float_format.h"
#include "hlo/ir/literal.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Op;
using hlo::Shape;
using hlo::Type;

constexpr uint64_t kChunk = uint64_t{1} << 16;  // number of arguments of one execution
constexpr uint64_t kBlock = 2048;               // number of arguments that are checked together
constexpr size_t kKept = 32;                    // number of largest errors that are kept, to be measured again by MPFR

struct Found {
  double error = 0, argument = 0, result = 0;
};
bool larger(const Found& a, const Found& b) {
  return a.error > b.error;
}

// The errors found so far, summed over several chunks.
struct Tally {
  std::vector<Found> worst;
  uint64_t arguments = 0, wrong = 0, nearest = 0;

  double floor = 0;  ///< smaller errors are not recorded
  /// The error that a further element must exceed to be kept.
  double least_kept() const { return worst.size() == kKept ? std::max(worst.back().error, floor) : floor; }
  void add(Found one) {
    if (one.error <= least_kept()) return;
    worst.insert(std::upper_bound(worst.begin(), worst.end(), one, larger), one);
    if (worst.size() > kKept) worst.pop_back();
  }
  void add(const Tally& other) {
    for (const Found& one : other.worst) add(one);
    arguments += other.arguments;
    wrong += other.wrong;
    nearest += other.nearest;
  }
};

std::string program_of(Op op, Type type, uint64_t count) {
  const std::string shape = fmt::format("{}[{}]", hlo::type_info(type).text, count);
  return fmt::format("HloModule accuracy\nENTRY e {{\n  x = {0} parameter(0)\n  ROOT y = {0} {1}(x)\n}}\n", shape,
                     hlo::op_info(op).text);
}

// Reads element `i` of `bytes`, an array of the format.
double value_at(const FloatFormat& format, const uint8_t* bytes, size_t i) {
  if (format.bits() == 32) {
    float value = 0;
    std::memcpy(&value, bytes + i * sizeof value, sizeof value);
    return static_cast<double>(value);
  }
  uint16_t bits = 0;
  std::memcpy(&bits, bytes + i * sizeof bits, sizeof bits);
  return decode_float(format, bits);
}

// Tests one function in one type. Several threads take chunks of arguments from a shared counter.
class Sweep {
 public:
  Sweep(const AccuracyOptions& options, Op op, Type type)
      : options_(options),
        type_(type),
        function_(near_function(op)),
        ruler_(type),
        format_(float_format(static_cast<uint32_t>(type))) {
    row_.op = op;
    row_.type = type;
    total_ = ((uint64_t{1} << format_.bits()) + options.step - 1) / options.step;
    each_ = std::min(kChunk, total_);
    chunks_ = (total_ + each_ - 1) / each_;
    // Neighbouring arguments have similar errors. Visiting the chunks in another order finds large errors early, so
    // that fewer smaller errors need to be recorded.
    for (stride_ = chunks_ * 5 / 8 + 1; std::gcd(stride_, chunks_) != 1;) ++stride_;
  }

  uint64_t total() const { return total_; }

  AccuracyRow run(const Session& session, const std::function<void(uint64_t)>& done) {
    if (const Status status = sweep(session, done); !status.ok()) {
      const AccuracyRow empty{.op = row_.op, .type = row_.type, .error = status.message()};
      return empty;
    }
    measure_again();
    return row_;
  }

 private:
  Status sweep(const Session& session, const std::function<void(uint64_t)>& done) {
    COLLET_ASSIGN(const Program program, session.compile(program_of(row_.op, type_, each_), {}));
    COLLET_ASSIGN(const collet_executable_facts facts, program.facts());
    row_.on_device = facts.fallback_ops == 0;
    std::vector<std::thread> others;
    for (uint32_t i = 1; i < options_.jobs; ++i) others.emplace_back([&] { work(program, done); });
    work(program, done);
    for (std::thread& other : others) other.join();
    return failure_;
  }

  void work(const Program& program, const std::function<void(uint64_t)>& done) {
    for (;;) {
      const uint64_t taken = next_.fetch_add(1);
      if (taken >= chunks_) return;
      Tally tally{.worst = {}, .floor = floor_.load(std::memory_order_relaxed)};
      const Status status = chunk(program, taken * stride_ % chunks_ * each_, tally);
      const std::lock_guard lock(mutex_);
      if (!status.ok()) {
        failure_ = status;
        next_ = chunks_;
        return;
      }
      tally_.add(tally);
      floor_.store(tally_.least_kept(), std::memory_order_relaxed);
      if (done) done(tally_.arguments);
    }
  }

  // The last chunk repeats the last pattern to fill the program's shape.
  Status chunk(const Program& program, uint64_t first, Tally& tally) const {
    const Shape shape = Shape::array(type_, {{static_cast<int64_t>(each_)}});
    Literal argument = Literal::uninitialized(shape);
    const uint64_t count = std::min(each_, total_ - first);
    const size_t size = static_cast<size_t>(format_.bits()) / 8;
    uint8_t* const place = argument.mutable_bytes();
    for (uint64_t i = 0; i < each_; ++i) {
      const auto bits = static_cast<uint32_t>((first + std::min(i, count - 1)) * options_.step);
      std::memcpy(place + i * size, &bits, size);
    }
    COLLET_ASSIGN(const std::vector<Literal> results, program.run({&argument, 1}));
    for (uint64_t begin = 0; begin < count; begin += kBlock) {
      const uint64_t n = std::min(kBlock, count - begin);
      if (type_ == Type::F32 && n == kBlock && tally.floor >= 0.5) {
        judge_floats(argument.bytes() + begin * size, results[0].bytes() + begin * size, tally);
      } else {
        judge_each(argument.bytes() + begin * size, results[0].bytes() + begin * size, n, tally);
      }
    }
    tally.arguments = count;
    return ok_status();
  }

  void judge_each(const uint8_t* in, const uint8_t* out, uint64_t n, Tally& tally) const {
    std::array<double, kBlock> x{}, near{};
    for (uint64_t i = 0; i < n; ++i) x[i] = value_at(format_, in, i);
    near_values(row_.op, x.data(), near.data(), n);
    for (uint64_t i = 0; i < n; ++i) judge(x[i], near[i], value_at(format_, out, i), tally);
  }

  // Checks a block of f32 results when the floor is at least half a ULP, so that a correctly rounded result cannot be
  // among the largest errors. The loops have no branches, because there are billions of arguments.
  void judge_floats(const uint8_t* in, const uint8_t* out, Tally& tally) const {
    std::array<float, kBlock> argument, got;
    std::array<double, kBlock> x, near;
    std::array<uint32_t, kBlock> open;
    std::memcpy(argument.data(), in, sizeof argument);
    std::memcpy(got.data(), out, sizeof got);
    for (uint64_t i = 0; i < kBlock; ++i) x[i] = static_cast<double>(argument[i]);
    near_values(row_.op, x.data(), near.data(), kBlock);
    constexpr float kMost = std::numeric_limits<float>::max();
    for (uint64_t i = 0; i < kBlock; ++i) {
      const float rounded = static_cast<float>(near[i]), size = std::fabs(got[i]);
      open[i] = static_cast<uint32_t>(!(rounded == got[i])) | static_cast<uint32_t>(!(size > 0)) |
                static_cast<uint32_t>(!(size <= kMost)) | static_cast<uint32_t>(!(std::fabs(argument[i]) <= kMost));
    }
    for (uint64_t i = 0; i < kBlock; ++i) {
      if (open[i]) {
        judge(x[i], near[i], static_cast<double>(got[i]), tally);
      } else {
        ++tally.nearest;
      }
    }
  }

  // Records the error of one result. `near` is the function's value in double; it is not used if the argument is not
  // finite.
  void judge(double x, double near, double got, Tally& tally) const {
    const bool known = std::isfinite(x);
    double error = std::numeric_limits<double>::infinity();
    if (known) error = std::isnan(near) && std::isnan(got) ? 0 : ruler_.error(near, got);
    if (error > tally.least_kept() || std::isinf(error)) {
      error = ruler_.error(function_(x), got);
      tally.wrong += std::isinf(error);
      if (error > tally.least_kept()) tally.add({error, x, got});
    }
    tally.nearest += error <= 0.5;
  }

  void measure_again() {
    row_.arguments = tally_.arguments;
    row_.wrong = tally_.wrong;
    row_.nearest = tally_.nearest;
    for (const Found& one : tally_.worst) {
      ExactResult exact;
      exact_functions(row_.op, {&one.argument, 1}, {}, {&exact, 1});
      const double error = ruler_.error(exact.value, one.result, exact.rest);
      if (error <= row_.worst) continue;
      row_.worst = error;
      row_.argument = one.argument;
      row_.result = one.result;
    }
  }

  const AccuracyOptions& options_;
  const Type type_;
  double (*const function_)(double);
  const Ruler ruler_;
  const FloatFormat format_;
  uint64_t total_ = 0, each_ = 0, chunks_ = 0, stride_ = 0;
  std::atomic<uint64_t> next_{0};
  std::atomic<double> floor_{0};
  std::mutex mutex_;
  Tally tally_;
  Status failure_ = ok_status();
  AccuracyRow row_;
};

}  // namespace

Expected<std::vector<AccuracyRow>> measure_accuracy(const AccuracyOptions& options) {
  COLLET_ASSIGN(const std::unique_ptr<Session> session, Session::open(options.backend));
  uint64_t total = 0, before = 0;
  for (const Type type : options.types)
    for (const Op op : options.ops) total += Sweep(options, op, type).total();
  std::vector<AccuracyRow> rows;
  for (const Type type : options.types) {
    for (const Op op : options.ops) {
      Sweep sweep(options, op, type);
      before += sweep.total();
      const auto known = std::find_if(options.known.begin(), options.known.end(),
                                      [&](const AccuracyRow& row) { return row.op == op && row.type == type; });
      if (known != options.known.end()) {
        rows.push_back(*known);
        continue;
      }
      const std::string what = fmt::format("{} of {}", hlo::op_info(op).text, hlo::type_info(type).text);
      rows.push_back(sweep.run(*session, [&](uint64_t done) {
        if (options.progress) options.progress(before - sweep.total() + done, total, what);
      }));
      if (options.measured) options.measured(rows.back());
    }
  }
  return rows;
}

}  // namespace collet::conformance

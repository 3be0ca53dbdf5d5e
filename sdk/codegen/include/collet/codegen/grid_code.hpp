// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// GridCode holds the kernels and prepared library calls of a launch plan on a device; GridTuner chooses between the
/// two by measuring them. Included by grid_backend.hpp. C++17.

#include <collet/codegen/compile.h>
#include <collet/codegen/grid_device.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace collet::codegen::detail {

/// The kernels and the library calls of a launch plan on a device.
class GridCode {
 public:
  /// Loads the kernels. `program` must outlive this object. `name` is used in error messages.
  GridCode(GridDevice& device, const CompiledProgram& program, const std::string& name)
      : device_(device), plan_(program.plan), ways_(plan_.libraries.size(), 0) {
    try {
      if (!plan_.functions.empty()) module_ = device.load_module(program.object, name);
      for (const std::string& function : plan_.functions) kernels_.push_back(device.find_kernel(module_, function));
    } catch (...) {
      give_back();
      throw;
    }
  }
  GridCode(const GridCode&) = delete;
  GridCode& operator=(const GridCode&) = delete;
  ~GridCode() { give_back(); }

  /// Replaces each choice of the plan by one of its alternatives. Called once. `choices` has a number for each choice:
  /// 0 selects the kernels, n > 0 the library's way number n. The kernels are also used where a number is missing or
  /// the library does not have that way. Numbers for library calls that are not part of a choice may follow, by the number
  /// of the call: n > 0 selects the library's way number n, anything else the first one. Throws UNIMPLEMENTED if something
  /// that only a library computes, such as an fft, is computed by none.
  void choose(const std::vector<uint32_t>& choices) { steps_ = chosen(plan_.steps, choices); }

  /// Returns how many numbers `choose` accepts. Only factorizations have several ways without being part of a choice.
  static size_t choices(const LaunchPlan& plan) {
    const auto is_factorization = [](const LibraryCall& call) {
      return std::holds_alternative<LibraryFactorization>(call);
    };
    const bool any = std::any_of(plan.libraries.begin(), plan.libraries.end(), is_factorization);
    return plan.choices + (any ? plan.libraries.size() : 0);
  }

  const LaunchPlan& plan() const { return plan_; }
  /// Returns the plan's steps, with the steps of the selected alternative in place of each choice.
  const StepList& steps() const { return steps_; }
  const std::vector<GridDevice::Handle>& kernels() const { return kernels_; }
  /// Returns the way that library call number `call` uses; 0 if the call is not used.
  GridDevice::Handle way(uint32_t call) const { return ways_[call]; }

  /// Returns the number of the library call in a choice.
  static uint32_t library_call(const Step& choice) {
    const StepList& steps = choice.children[1];
    const auto found =
        std::find_if(steps.begin(), steps.end(), [](const Step& s) { return s.kind == StepKind::kLibrary; });
    return found == steps.end() ? 0 : found->call;
  }

  /// Returns the number of the plan's first library call that equals call number `call`.
  uint32_t first_equal(uint32_t call) const {
    const std::vector<LibraryCall>& all = plan_.libraries;
    return static_cast<uint32_t>(std::find(all.begin(), all.end(), all[call]) - all.begin());
  }

  /// Appends the numeric parameters of a step, which follow the addresses of its places.
  static void append_numbers(const Step& step, std::vector<uint64_t>* to) {
    if (step.kind != StepKind::kKernel) return;
    for (const int64_t number : step.kernel.numbers) to->push_back(static_cast<uint64_t>(number));
  }

  /// Starts a kernel or a call of a library with these parameters.
  void start(const Step& step, const std::vector<uint64_t>& arguments, uint64_t run_id) const {
    if (step.kind == StepKind::kLibrary) return start_library(ways_[step.call], step.call, arguments, run_id);
    GridDevice::Launch what;
    what.kernel = kernels_[step.kernel.function];
    what.blocks = step.kernel.blocks;
    what.block_threads = step.kernel.block_threads;
    what.shared_bytes = step.kernel.shared_bytes;
    what.arguments = arguments.data();
    what.argument_count = static_cast<uint32_t>(arguments.size());
    if (!step.kernel.maps.empty()) what.maps = &step.kernel.maps;
    what.name = &plan_.functions[step.kernel.function];
    what.run_id = run_id;
    device_.launch(what);
  }
  /// Starts library call number `call` in the given way.
  void start_library(GridDevice::Handle way, uint32_t call, const std::vector<uint64_t>& arguments,
                     uint64_t run_id) const {
    const std::string name = name_of(plan_.libraries[call]);
    GridDevice::LibraryLaunch what;
    what.way = way;
    what.addresses = arguments.data();
    what.name = &name;
    what.run_id = run_id;
    device_.launch_library(what);
  }

 private:
  static std::string name_of(const LibraryCall& call) {
    static const char* const names[] = {"product", "convolution", "fft"};
    const auto* factorization = std::get_if<LibraryFactorization>(&call);
    return std::string("library ") + (factorization ? codegen::name_of(factorization->kind) : names[call.index()]);
  }
  StepList chosen(const StepList& list, const std::vector<uint32_t>& choices) {
    StepList out;
    for (const Step& step : list) {
      if (step.kind == StepKind::kChoice) {
        const uint32_t way = step.call < choices.size() ? choices[step.call] : 0;
        const bool is_there = way != 0 && keep_way(library_call(step), way - 1);
        const StepList inner = chosen(step.children[is_there ? 1 : 0], choices);
        out.insert(out.end(), inner.begin(), inner.end());
        continue;
      }
      if (step.kind == StepKind::kLibrary && ways_[step.call] == 0) {
        const size_t at = plan_.choices + size_t{step.call};
        const uint32_t way = at < choices.size() && choices[at] != 0 ? choices[at] - 1 : 0;
        if (!keep_way(step.call, way) && !keep_way(step.call, 0))
          throw kernel::Error(COLLET_UNIMPLEMENTED, "no library of the device has this fft or factorization");
      }
      out.push_back(step);
      for (StepList& children : out.back().children) children = chosen(children, choices);
    }
    return out;
  }
  /// Prepares a library call and stores its way number `number`. An equal call that uses the same way shares it.
  /// Returns false if the library does not have that way.
  bool keep_way(uint32_t call, uint32_t number) {
    const std::pair<uint32_t, uint32_t> key{first_equal(call), number};
    if (const auto known = kept_.find(key); known != kept_.end()) {
      ways_[call] = known->second;
      return true;
    }
    const std::vector<GridDevice::Handle> ways = device_.prepare(plan_.libraries[call]);
    for (size_t i = 0; i < ways.size(); ++i) {
      if (i == number) kept_[key] = ways_[call] = ways[i];
      if (i != number) device_.drop_prepared(ways[i]);
    }
    return ways_[call] != 0;
  }
  void give_back() noexcept {
    for (const auto& [key, way] : kept_) device_.drop_prepared(way);
    kept_.clear();
    if (module_ != 0) device_.unload_module(module_);
    module_ = 0;
  }

  GridDevice& device_;
  const LaunchPlan& plan_;
  GridDevice::Handle module_ = 0;
  std::vector<GridDevice::Handle> kernels_;
  /// By number of a library call: the way that it uses; 0 if the call is not used.
  std::vector<GridDevice::Handle> ways_;
  /// The prepared ways, indexed by the first of the equal calls and the number of the way.
  std::map<std::pair<uint32_t, uint32_t>, GridDevice::Handle> kept_;
  StepList steps_;
};

/// Makes the choices of a launch plan by measuring: each distinct choice is run on the device, in scratch memory, and
/// timed.
class GridTuner {
 public:
  GridTuner(GridDevice& device, const GridCode& code)
      : device_(device), code_(code), choices_(GridCode::choices(code.plan()), 0) {}

  /// Reads the choices that `text` of an earlier tuner returned. Returns false and changes nothing if the text does not
  /// fit this plan.
  bool read(const std::string& text) {
    std::istringstream in(text);
    std::vector<uint32_t> found;
    for (uint32_t way = 0; in >> way;) found.push_back(way);
    if (!in.eof() || found.size() != choices_.size() || found.empty()) return false;
    choices_ = std::move(found);
    report_ = "taken from a cache: " + this->text() + "\n";
    return true;
  }
  void measure() {
    try {
      find_choices(code_.plan().steps);
    } catch (...) {
      finish();
      free_scratch();
      throw;
    }
    free_scratch();
  }
  /// Returns, by the number of each choice, 0 for the kernels or the number of a library's way, from 1 on; then the
  /// numbers of ways for calls that are not part of a choice, see GridCode::choose.
  const std::vector<uint32_t>& choices() const { return choices_; }
  /// Returns the choices as text that `read` accepts.
  std::string text() const {
    std::string out;
    for (const uint32_t way : choices_) out += (out.empty() ? "" : " ") + std::to_string(way);
    return out;
  }
  /// Returns a readable report of what was measured.
  const std::string& report() const { return report_; }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kRounds = 3;  ///< rounds of a measurement; the shortest one counts
  /// Least duration of a round in ns, so that the clock's resolution does not matter.
  static constexpr double kRoundNs = 200e3;
  static constexpr int kMostRuns = 1000;  ///< most runs in a round
  /// Operands of factorizations with more bytes are not measured: that takes long, and the first way suits them.
  static constexpr uint64_t kMostMeasuredBytes = uint64_t{64} << 20;
  /// A library is chosen only if it needs less than this share of the kernels' time, so that noise does not decide.
  static constexpr double kMostOfKernelTime = 0.97;

  void find_choices(const StepList& list) {
    for (const Step& step : list) {
      if (step.kind == StepKind::kChoice) {
        choose(step);
      } else if (step.kind == StepKind::kLibrary) {
        if (const auto* call = std::get_if<LibraryFactorization>(&code_.plan().libraries[step.call]))
          choices_[code_.plan().choices + size_t{step.call}] = fastest_way(step, *call);
      } else {
        for (const StepList& children : step.children) find_choices(children);
      }
    }
  }
  void choose(const Step& step) {
    const uint32_t call = GridCode::library_call(step);
    // The key of a choice that has been measured: the library call, then the kernels.
    std::vector<uint32_t> same{code_.first_equal(call)};
    for (const StepList& steps : step.children) {
      for (const Step& one : steps) {
        if (one.kind == StepKind::kKernel) same.push_back(one.kernel.function);
      }
    }
    const auto known = known_.find(same);
    choices_[step.call] = known != known_.end() ? known->second : known_[same] = fastest(step, call);
  }
  uint32_t fastest(const Step& step, uint32_t call) {
    const std::vector<GridDevice::Handle> ways = device_.prepare(code_.plan().libraries[call]);
    uint32_t best = 0;
    try {
      best = ways.empty() ? 0 : device_.prefers_libraries() ? 1 : compare(step, call, ways);
    } catch (...) {
      finish();
      for (const GridDevice::Handle way : ways) device_.drop_prepared(way);
      throw;
    }
    for (const GridDevice::Handle way : ways) device_.drop_prepared(way);
    return best;
  }
  /// Returns the fastest alternative: 0 for the kernels, or the number of a library's way, from 1 on.
  uint32_t compare(const Step& step, uint32_t call, const std::vector<GridDevice::Handle>& ways) {
    try {
      make_scratch(step);
    } catch (const std::bad_alloc&) {
      return without_memory(call);
    } catch (const kernel::Error& error) {
      if (error.code() != COLLET_RESOURCE_EXHAUSTED) throw;
      return without_memory(call);
    }
    std::vector<double> times(ways.size() + 1, std::numeric_limits<double>::max());
    for (int round = 0; round < kRounds; ++round) {
      times[0] = std::min(times[0], time_of(step.children[0], 0));
      for (size_t i = 0; i < ways.size(); ++i) times[i + 1] = std::min(times[i + 1], time_of_way(step, ways[i]));
    }
    const auto fastest_way = std::min_element(times.begin() + 1, times.end()) - times.begin();
    const bool is_library = times[static_cast<size_t>(fastest_way)] < kMostOfKernelTime * times[0];
    const auto best = static_cast<uint32_t>(is_library ? fastest_way : 0);
    report_ += "library " + std::to_string(call) + ": way " + std::to_string(best) + " of";
    for (const double ns : times) report_ += " " + std::to_string(static_cast<int64_t>(ns));
    report_ += " ns\n";
    return best;
  }
  /// Returns the number of the fastest way of a factorization, from 1 on. Equal calls are measured once.
  uint32_t fastest_way(const Step& step, const LibraryFactorization& call) {
    const auto [known, is_new] = known_ways_.try_emplace(code_.first_equal(step.call), 1);
    if (!is_new || device_.prefers_libraries()) return known->second;
    const std::vector<GridDevice::Handle> ways = device_.prepare(code_.plan().libraries[step.call]);
    try {
      if (ways.size() > 1) known->second = fastest_way(step, call, ways);
    } catch (...) {
      finish();
      for (const GridDevice::Handle way : ways) device_.drop_prepared(way);
      throw;
    }
    for (const GridDevice::Handle way : ways) device_.drop_prepared(way);
    return known->second;
  }
  uint32_t fastest_way(const Step& step, const LibraryFactorization& call,
                       const std::vector<GridDevice::Handle>& ways) {
    uint64_t first_bytes = 0;
    for (uint32_t i = 0; i < inputs_of(call); ++i) first_bytes += place_of(step, i).bytes;
    if (first_bytes > kMostMeasuredBytes) return 1;
    try {
      make_operands(step, call);
    } catch (const std::bad_alloc&) {
      return without_memory(step.call, 1);
    } catch (const kernel::Error& error) {
      if (error.code() != COLLET_RESOURCE_EXHAUSTED) throw;
      return without_memory(step.call, 1);
    }
    std::vector<double> times;
    for (const GridDevice::Handle way : ways) times.push_back(time_of_factorization(step, call, way));
    const auto best = static_cast<uint32_t>(std::min_element(times.begin(), times.end()) - times.begin()) + 1;
    report_ += "library " + std::to_string(step.call) + ": way " + std::to_string(best) + " of";
    for (const double ns : times) report_ += " " + std::to_string(static_cast<int64_t>(ns));
    report_ += " ns\n";
    return best;
  }
  /// Returns the number of places of a factorization that it reads.
  static uint32_t inputs_of(const LibraryFactorization& call) {
    using Kind = LibraryFactorization::Kind;
    return call.kind == Kind::kTriangularSolve || call.kind == Kind::kReflectors ? 2 : 1;
  }
  /// Lays out the places of a factorization in the scratch memory, and copies of those that it reads behind them, which
  /// are filled with numbers: time depends on them, and zeros are no matrices with a Cholesky factor.
  void make_operands(const Step& step, const LibraryFactorization& call) {
    offsets_.clear();
    uint64_t bytes = 0;
    const auto add = [&](uint64_t size) {
      return std::exchange(bytes, bytes + (size + kAlignment - 1) / kAlignment * kAlignment);
    };
    for (uint32_t i = 0; i < step.places; ++i) offsets_[{place_of(step, i).slot, place_of(step, i).offset}] = 0;
    for (auto& [place, offset] : offsets_) {
      uint64_t most = 0;
      for (uint32_t i = 0; i < step.places; ++i) {
        const Place& one = place_of(step, i);
        if (one.slot == place.first && one.offset == place.second) most = std::max(most, one.bytes);
      }
      offset = add(most);
    }
    originals_.clear();
    for (uint32_t i = 0; i < inputs_of(call); ++i) originals_.push_back(add(place_of(step, i).bytes));
    reserve(bytes);
    for (uint32_t i = 0; i < inputs_of(call); ++i) {
      const std::vector<char> numbers = numbers_for(call, i, place_of(step, i).bytes);
      device_.write(scratch_, originals_[i], numbers.data(), numbers.size());
    }
  }
  /// Returns numbers for place `i` of a factorization: pseudo-random ones in [-1, 1), with a large diagonal where a
  /// matrix must be definite or is solved.
  static std::vector<char> numbers_for(const LibraryFactorization& call, uint32_t i, uint64_t bytes) {
    using Kind = LibraryFactorization::Kind;
    const bool is_double = call.type == COLLET_TYPE_F64 || call.type == COLLET_TYPE_C128;
    const size_t parts = call.type == COLLET_TYPE_C64 || call.type == COLLET_TYPE_C128 ? 2 : 1;
    const size_t size = is_double ? sizeof(double) : sizeof(float);
    const auto count = static_cast<size_t>(bytes) / size;
    const bool has_diagonal = i == 0 && (call.kind == Kind::kCholesky || call.kind == Kind::kTriangularSolve);
    const int64_t rows = call.kind == Kind::kTriangularSolve && !call.left ? call.columns : call.rows;
    const auto columns = static_cast<size_t>(has_diagonal ? rows : call.columns);
    std::vector<char> out(count * size);
    uint64_t state = 0x9e3779b97f4a7c15;
    for (size_t k = 0; k < count; ++k) {
      state = state * 6364136223846793005 + 1442695040888963407;
      double x = static_cast<double>(state >> 11) * 0x1p-52 - 1;
      const size_t element = k / parts, column = element / static_cast<size_t>(rows) % columns;
      if (has_diagonal && k % parts == 0 && element % static_cast<size_t>(rows) == column)
        x = 2 * static_cast<double>(rows);
      const auto narrow = static_cast<float>(x);
      std::memcpy(&out[k * size], is_double ? static_cast<const void*>(&x) : &narrow, size);
    }
    return out;
  }
  /// Returns the time of a factorization, with that of copying its operands, which it overwrites.
  double time_of_factorization(const Step& step, const LibraryFactorization& call, GridDevice::Handle way) {
    try {
      time_of_factorization(step, call, way, 1);  // loads the library's code
      const double once = time_of_factorization(step, call, way, 1);
      const int runs = static_cast<int>(std::clamp(kRoundNs / std::max(once, 1.0), 1.0, double{kMostRuns}));
      if (runs == 1) return once;
      double best = std::numeric_limits<double>::max();
      for (int round = 0; round < kRounds; ++round)
        best = std::min(best, time_of_factorization(step, call, way, runs) / runs);
      return best;
    } catch (const kernel::Error& error) {
      if (error.code() == COLLET_UNAVAILABLE) throw;
      device_.finish();
      return std::numeric_limits<double>::max();
    }
  }
  double time_of_factorization(const Step& step, const LibraryFactorization& call, GridDevice::Handle way, int runs) {
    const Clock::time_point begin = Clock::now();
    for (int run = 0; run < runs; ++run) {
      for (uint32_t i = 0; i < inputs_of(call); ++i)
        device_.copy(scratch_, offset_of(step, i), scratch_, originals_[i], place_of(step, i).bytes);
      start(step, way);
    }
    if (const uint64_t mark = device_.mark(); mark != 0) device_.wait(mark);
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  /// Waits for all work that was started, because its memory is about to be freed.
  void finish() noexcept {
    try {
      device_.finish();
    } catch (...) {  // the device reports its failure through the exception that is being handled
    }
  }
  /// Returns the time of one way of the library; infinity if starting it fails.
  double time_of_way(const Step& step, GridDevice::Handle way) {
    try {
      return time_of(step.children[1], way);
    } catch (const kernel::Error& error) {
      if (error.code() == COLLET_UNAVAILABLE) throw;
      device_.finish();
      return std::numeric_limits<double>::max();
    }
  }
  uint32_t without_memory(uint32_t call, uint32_t way = 0) {
    report_ += "library " + std::to_string(call) + ": way " + std::to_string(way) + ", there is no memory to measure\n";
    return way;
  }
  /// Returns the time of one run of the steps, measured over several runs that are started one after the other.
  double time_of(const StepList& steps, GridDevice::Handle way) {
    const double once = time_of(steps, way, 1);
    const int runs = static_cast<int>(std::clamp(kRoundNs / std::max(once, 1.0), 1.0, double{kMostRuns}));
    return time_of(steps, way, runs) / runs;
  }
  double time_of(const StepList& steps, GridDevice::Handle way, int runs) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < runs; ++i) {
      for (const Step& step : steps) start(step, way);
    }
    if (const uint64_t mark = device_.mark(); mark != 0) device_.wait(mark);
    return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  }
  void start(const Step& step, GridDevice::Handle way) {
    arguments_.clear();
    for (uint32_t i = 0; i < step.places; ++i) arguments_.push_back(scratch_ + offset_of(step, i));
    if (step.kind == StepKind::kCopy)
      return device_.copy(scratch_, offset_of(step, 1), scratch_, offset_of(step, 0), step.bytes);
    GridCode::append_numbers(step, &arguments_);
    if (step.kind == StepKind::kLibrary) return code_.start_library(way, step.call, arguments_, 0);
    code_.start(step, arguments_, 0);
  }

  /// Gives each place of a choice an offset in the scratch memory, which is filled with zeros.
  void make_scratch(const Step& choice) {
    offsets_.clear();
    for (const StepList& steps : choice.children) {
      for (const Step& step : steps) {
        for (uint32_t i = 0; i < step.places; ++i) {
          const Place& place = place_of(step, i);
          uint64_t& most = offsets_[{place.slot, place.offset}];
          most = std::max(most, place.bytes);
        }
      }
    }
    uint64_t bytes = 0;
    for (auto& [place, offset] : offsets_) {
      const uint64_t own = (offset + kAlignment - 1) / kAlignment * kAlignment;
      offset = std::exchange(bytes, bytes + own);
    }
    reserve(bytes);
  }
  /// Makes the scratch memory at least this large; new memory is filled with zeros.
  void reserve(uint64_t bytes) {
    if (bytes <= scratch_bytes_) return;
    free_scratch();
    scratch_ = device_.allocate(bytes, kAlignment);
    scratch_bytes_ = bytes;
    const std::vector<char> zeros(std::min<uint64_t>(bytes, uint64_t{1} << 20));
    for (uint64_t at = 0; at < bytes; at += zeros.size())
      device_.write(scratch_, at, zeros.data(), std::min<uint64_t>(zeros.size(), bytes - at));
  }
  void free_scratch() noexcept {
    if (scratch_ != kernel::no_memory) device_.free(scratch_);
    scratch_ = kernel::no_memory;
    scratch_bytes_ = 0;
  }
  const Place& place_of(const Step& step, uint32_t i) const { return code_.plan().places[step.first_place + i]; }
  uint64_t offset_of(const Step& step, uint32_t i) const {
    const Place& place = place_of(step, i);
    return offsets_.at({place.slot, place.offset});
  }

  static constexpr uint64_t kAlignment = 256;

  GridDevice& device_;
  const GridCode& code_;
  std::vector<uint32_t> choices_;
  std::map<uint32_t, uint32_t> known_ways_;          ///< ways of factorizations by the first of the equal calls
  std::vector<uint64_t> originals_;                  ///< offsets of the operands' copies of a factorization
  std::map<std::vector<uint32_t>, uint32_t> known_;  ///< choices by the keys that were measured
  std::string report_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> offsets_;
  std::vector<uint64_t> arguments_;
  kernel::Memory scratch_ = kernel::no_memory;
  uint64_t scratch_bytes_ = 0;
};

}  // namespace collet::codegen::detail

// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/source/opencl_text.h"

#include <collet/types.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string_view>

#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/source/kernel_text.h"
#include "sdk/codegen/source/product_text.h"

namespace collet::codegen {
namespace {

using source::Function;
using source::KernelWriter;
using source::kOpenCl;
using source::Unit;

/// Parts for each thread of a processor, so that none waits long for the others.
constexpr int64_t kPartsOfThread = 4;

std::string text(int64_t x) {
  return std::to_string(x);
}

/// Returns the head of a kernel of `group` work-items a group, whose arrays are m0 + o0, m1 + o1, ...
std::string head_of(const std::string& name, uint32_t arrays, uint32_t group) {
  std::string parameters;
  for (uint32_t i = 0; i < arrays; ++i)
    parameters += (i == 0 ? "" : ", ") + std::string("__global char *m") + text(i) + ", int64_t o" + text(i);
  return "__kernel __attribute__((reqd_work_group_size(" + text(group) + ", 1, 1)))\nvoid " + name + "(" + parameters +
         ")";
}

/// Returns the address of what lies `offset` bytes behind parameter number `i`.
std::string array_of(uint32_t i, uint64_t offset = 0) {
  return "(m" + text(i) + " + o" + text(i) + (offset == 0 ? ")" : " + " + std::to_string(offset) + ")");
}

void write_grid_kernel(Unit& unit, const GridKernel& grid, const std::string& head,
                       const std::vector<std::string>& arrays, const std::string& ops) {
  Kernel kernel = grid.kernel;
  clear_schedule(kernel);
  kernel.lanes = 1;
  kernel.lane_loop = kernel.loops.size();
  Function f(unit);
  KernelWriter(f, kernel).run_grid(grid.schedule, arrays);
  unit.add((ops.empty() ? "" : source::comment(ops)) + f.print(head));
}

void declare_places(Function& f, const std::vector<std::string>& arrays) {
  std::string all;
  for (const std::string& address : arrays) all += (all.empty() ? "" : ", ") + address;
  f.statement(f.unit.places("places[] = {") + (all.empty() ? "0" : all) + "};");
}

/// Writes a kernel whose work-items each run a part of the range of kernel `name`.
void write_parts(Unit& unit, const std::string& name, const KernelCall& call, const std::vector<std::string>& arrays,
                 const std::string& head) {
  Function f(unit);
  declare_places(f, arrays);
  const std::string range = text(call.range), grain = text(call.grain);
  f.statement("const int64_t turns = get_global_size(0)" + (call.grain == 1 ? "" : " * " + grain) + ";");
  f.statement("const int64_t part = (" + range + " + turns - 1) / turns" + (call.grain == 1 ? "" : " * " + grain) +
              ", begin = get_global_id(0) * part;");
  f.statement("if (begin < " + range + ") " + unit.part(name) + "(places, begin, min(begin + part, (int64_t)" + range +
              "));");
  unit.add(f.print(head));
}

/// The body of a kernel that sorts rows; each group sorts some. Numbers of elements are merged from one array to another: by each work-item
/// some pairs of runs or, where there are fewer pairs than work-items, by finding the place of each element in the other run of its pair.
/// Equal elements keep their order. A comparator may be no order, as one of floats that may be NaN: then two elements may get one
/// place, and the runs are merged by some of the work-items after all.
constexpr const char* kSort = R"($LOST  const int64_t own = get_local_id(0), items = get_local_size(0);
  for (int64_t row = get_group_id(0); row < $ROWS; row += get_num_groups(0)) {
    const int64_t first = row / $BELOW * ((int64_t)$BELOW * $LENGTH) + row % $BELOW;
    __global int32_t *from = (__global int32_t *)$SCRATCH + row * $LENGTH, *to = from + (int64_t)$ROWS * $LENGTH;
    for (int64_t i = own; i < $LENGTH; i += items) from[i] = (int32_t)i;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int64_t width = 1; width < $LENGTH; width *= 2) {
      bool by_rank = 2 * width * items > $LENGTH && items > 1;
      if (by_rank) {
$CLEAR        for (int64_t i = own; i < $LENGTH; i += items) {
          const int64_t begin = i / (2 * width) * (2 * width), middle = min(begin + width, (int64_t)$LENGTH);
          const bool is_left = i < middle;
          const int64_t other = is_left ? middle : begin;
          int64_t low = other, high = is_left ? min(begin + 2 * width, (int64_t)$LENGTH) : middle;
          while (low < high) {
            const int64_t between = (low + high) / 2;
            const int64_t x = first + from[between] * (int64_t)$BELOW, y = first + from[i] * (int64_t)$BELOW;
            const bool comes_before = is_left ? $COMPARE(places, x, y) : !$COMPARE(places, y, x);
            low = comes_before ? between + 1 : low;
            high = comes_before ? high : between;
          }
          to[i - (is_left ? 0 : width) + (low - other)] = from[i];
        }
$CHECK      }
      if (!by_rank) {
        for (int64_t begin = 2 * width * own; begin < $LENGTH; begin += 2 * width * items) {
          const int64_t middle = min(begin + width, (int64_t)$LENGTH), end = min(begin + 2 * width, (int64_t)$LENGTH);
          int64_t i = begin, j = middle;
          for (int64_t at = begin; at < end; ++at) {
            const bool is_right = i == middle || (j < end && $COMPARE(places, first + from[j] * (int64_t)$BELOW, first + from[i] * (int64_t)$BELOW));
            to[at] = is_right ? from[j] : from[i];
            i += !is_right;
            j += is_right;
          }
        }
      }
      barrier(CLK_GLOBAL_MEM_FENCE);
      __global int32_t *const sorted = to;
      to = from;
      from = sorted;
    }
)";

constexpr const char* kSortLost = "  __local int32_t lost;\n";
constexpr const char* kSortClear = R"(        for (int64_t i = own; i < $LENGTH; i += items) to[i] = -1;
        if (own == 0) lost = 0;
        barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE);
)";
constexpr const char* kSortCheck = R"(        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int64_t i = own; i < $LENGTH; i += items) {
          if (to[i] < 0) lost = 1;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        by_rank = lost == 0;
)";

/// Writes the kernels that the steps of a plan start, and lets the steps start them.
class ProgramWriter {
 public:
  ProgramWriter(PlannedProgram& program, const Target& target)
      : program_(program), plan_(program.plan), target_(target), unit_(target, kOpenCl) {}

  Status run(std::string& out) {
    // Parts of kernels, which kernels, products and blocks of rows call.
    for (const FunctionSource& s : program_.sources) {
      if (const auto* const kernel = std::get_if<Kernel>(&s.body)) write_kernel(unit_, *kernel, s.name, s.ops);
      if (const auto* const order = std::get_if<Comparator>(&s.body))
        write_comparator(unit_, order->body, order->types, s.name);
      if (std::holds_alternative<BlockedProduct>(s.body)) write_product(unit_, s, program_.sources);
    }
    StepList all = std::move(plan_.steps);
    plan_.steps = steps(all);
    plan_.functions = std::move(names_);
    plan_.routines.clear();
    out = unit_.text();
    return status_;
  }

 private:
  /// The parameters of a kernel, and how it writes the places of its step.
  struct Arrays {
    uint32_t count = 0;                  ///< parameters
    std::vector<std::string> addresses;  ///< by place of the step
  };

  StepList steps(const StepList& list) {
    StepList out;
    for (const Step& step : list) one(step, out);
    return out;
  }

  void one(const Step& step, StepList& out) {
    switch (step.kind) {
      case StepKind::kKernel: {
        if (std::holds_alternative<BlockedProduct>(program_.sources[step.kernel.function].body))
          return product(step, out);
        Step first = step;
        first.kernel.tail = kNoFunction;
        if (step.kernel.tail == kNoFunction) return kernel(first, out);
        Step second = first;
        first.places = step.kernel.tail_place;
        second.kernel.function = step.kernel.tail;
        second.kernel.range = step.kernel.tail_range;
        second.kernel.grain = 1;
        second.kernel.parallel = false;
        second.first_place += first.places;
        second.places -= first.places;
        kernel(first, out);
        return kernel(second, out);
      }
      case StepKind::kBlocks:
        return blocks(step, out);
      case StepKind::kRoutine:
        return sort(step, out);
      default: {
        Step copy = step;
        for (StepList& children : copy.children) children = steps(children);
        out.push_back(std::move(copy));
      }
    }
  }

  void kernel(Step step, StepList& out) {
    const FunctionSource& source = program_.sources[step.kernel.function];
    const auto* const grid = std::get_if<GridKernel>(&source.body);
    const bool shared = step.places <= kMostOpenClArrays;
    if (!grid) {
      const int64_t parts = step.kernel.parallel ? kPartsOfThread * target_.threads : 1;
      const int64_t grains = (step.kernel.range + step.kernel.grain - 1) / step.kernel.grain;
      step.kernel.blocks = static_cast<uint32_t>(std::clamp<int64_t>(grains, 1, parts));
      step.kernel.block_threads = 1;
    }
    const KernelCall& call = step.kernel;
    // Equal kernels have one function. If an array of the plan is no parameter, the function is that of the step.
    const auto known = shared ? kernels_.find({call.function, call.range}) : kernels_.end();
    if (known != kernels_.end()) {
      step.kernel.function = known->second;
      out.push_back(std::move(step));
      return;
    }
    const FunctionId function = call.function;
    const std::string name = unique(source.name);
    const Arrays arrays = shared ? all_places(step.places) : by_slot(step, source.ops);
    const std::string head = head_of(name, arrays.count, call.block_threads);
    if (grid) {
      write_grid_kernel(unit_, *grid, head, arrays.addresses, source.ops);
    } else {
      write_parts(unit_, source.name, call, arrays.addresses, head);
    }
    step.kernel.function = add(name);
    if (shared) kernels_[{function, call.range}] = step.kernel.function;
    out.push_back(std::move(step));
  }

  /// The work-items are workers, each with its own scratch memory.
  void product(const Step& step, StepList& out) {
    const FunctionSource& source = program_.sources[step.kernel.function];
    const auto& call = std::get<BlockedProduct>(source.body);
    const int64_t jobs = call.jobs(),
                  workers = call.cost_ns > target_.awake_ns ? std::min<int64_t>(jobs, call.threads) : 1;
    Step made = as_kernel(step, workers);
    const std::string name = unique(source.name);
    const Arrays arrays = by_slot(made, source.ops);
    Function f(unit_);
    declare_places(f, arrays.addresses);
    f.statement("const int64_t worker = get_global_id(0);");
    f.open("for (int64_t job = worker; job < " + text(jobs) + "; job += get_global_size(0))");
    f.statement(unit_.part(source.name) + "(places, job, job + 1, worker);");
    f.close();
    unit_.add(f.print(head_of(name, arrays.count, 1)));
    made.kernel.function = add(name);
    out.push_back(std::move(made));
  }

  /// What a step writes for another one in the same block is in memory of the worker.
  void blocks(const Step& step, StepList& out) {
    const StepList& inner = step.children[0];
    Step made = as_kernel(step, step.kernel.parallel ? std::min<int64_t>(step.kernel.range, target_.threads) : 1);
    made.first_place = inner.front().first_place;
    made.places = inner.back().first_place + inner.back().places - made.first_place;
    made.children.clear();
    const uint32_t first = made.first_place;
    const std::string name = unique("blocks");
    const Arrays arrays = by_slot(made, program_.sources[inner.front().kernel.function].ops);
    Function f(unit_);
    f.statement("const int64_t worker = get_global_id(0);");
    f.open("for (int64_t block = worker; block < " + text(step.kernel.range) + "; block += get_global_size(0))");
    for (const Step& one : inner) {
      std::string all;
      for (uint32_t i = 0; i < one.places; ++i) {
        const uint64_t bytes = one.block_bytes[i];
        all += (i == 0 ? "" : ", ") + arrays.addresses[one.first_place - first + i];
        if (bytes != 0) all += " + (worker - block) * " + std::to_string(bytes);
      }
      f.open("");
      f.statement(unit_.places("places[] = {") + all + "};");
      const FunctionSource& source = program_.sources[one.kernel.function];
      const bool multiplies = std::holds_alternative<BlockedProduct>(source.body);
      f.statement(unit_.part(source.name) + "(places, block, block + 1" + (multiplies ? ", worker);" : ");"));
      f.close();
    }
    f.close();
    unit_.add(f.print(head_of(name, arrays.count, 1)));
    made.kernel.function = add(name);
    out.push_back(std::move(made));
  }

  /// Sorts rows by merging: see kSort.
  void sort(const Step& step, StepList& out) {
    const RoutineCall& call = plan_.routines[step.call];
    const std::vector<int64_t>& dims = call.operands[0].dims;
    const auto dimension = static_cast<size_t>(call.numbers[0]);
    int64_t rows = 1, below = 1;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d != dimension) rows *= dims[d];
      if (d > dimension) below *= dims[d];
    }
    const int64_t length = dims[dimension];
    if (rows == 0 || length == 0) return;
    constexpr int64_t kGroupsOfProcessor = 32;
    constexpr double kNsOfStep = 5;  // for an element in one round of merges
    const double ns =
        kNsOfStep * static_cast<double>(rows * length * (std::bit_width(static_cast<uint64_t>(length)) - 1));
    const int64_t threads = ns > target_.awake_ns ? kPartsOfThread * target_.threads : 1;
    const int64_t most = target_.has_grid() ? kGroupsOfProcessor * target_.grid.processors : threads;
    Step made = as_kernel(step, std::min(rows, most));
    if (target_.has_grid()) {
      const auto wanted = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(length)));
      made.kernel.block_threads =
          static_cast<uint32_t>(std::clamp<int64_t>(wanted, target_.grid.warp, target_.grid.block_threads));
    }
    const std::string name = unique("sort"), compare = program_.sources[call.compare].name;
    const Arrays arrays = by_slot(made, program_.sources[call.compare].ops);
    const bool is_order = call.numbers[1] != 0 && (call.numbers[3] & kSortButForNaN) == 0;
    const std::vector<std::pair<const char*, std::string>> names = {
        {"$LOST", is_order ? "" : kSortLost},
        {"$CLEAR", is_order ? "" : kSortClear},
        {"$CHECK", is_order ? "" : kSortCheck},
        {"$ROWS", text(rows)},
        {"$LENGTH", text(length)},
        {"$BELOW", text(below)},
        {"$COMPARE", compare},
        {"$SCRATCH", arrays.addresses[2 * call.operands.size()]}};
    std::string body = kSort;
    for (const auto& [from, to] : names) {
      for (size_t at = body.find(from); at != std::string::npos; at = body.find(from, at + to.size()))
        body.replace(at, std::string_view(from).size(), to);
    }
    std::string all, moves;
    for (size_t i = 0; i < call.operands.size(); ++i) {
      all += (i == 0 ? "" : ", ") + arrays.addresses[i];
      const std::string type = moved_type(collet_type_bytes(call.operands[i].element));
      moves += "    for (int64_t i = own; i < " + text(length) + "; i += items)\n      ((__global " + type + " *)" +
               arrays.addresses[call.operands.size() + i] + ")[first + i * " + text(below) + "] = ((__global const " +
               type + " *)" + arrays.addresses[i] + ")[first + from[i] * (int64_t)" + text(below) + "];\n";
    }
    unit_.add(source::comment(program_.sources[call.compare].ops) +
              head_of(name, arrays.count, made.kernel.block_threads) + " {\n  __global char *const places[] = {" + all +
              "};\n" + body + moves + "  }\n}\n");
    made.kernel.function = add(name);
    out.push_back(std::move(made));
  }

  /// Returns a type of elements of so many bytes, for copies.
  static std::string moved_type(size_t bytes) {
    return bytes == 1 ? "uchar" : bytes == 2 ? "ushort" : bytes == 4 ? "uint" : bytes == 8 ? "ulong" : "ulong2";
  }

  static Step as_kernel(const Step& step, int64_t workers) {
    Step made = step;
    made.kind = StepKind::kKernel;
    made.kernel.blocks = static_cast<uint32_t>(std::max<int64_t>(workers, 1));
    made.kernel.block_threads = 1;
    return made;
  }

  static Arrays all_places(uint32_t count) {
    Arrays out;
    out.count = count;
    for (uint32_t i = 0; i < count; ++i) out.addresses.push_back(array_of(i));
    return out;
  }

  /// Passes the slots of a step's places, and leaves the offsets to the kernel.
  Arrays by_slot(Step& step, const std::string& ops) {
    Arrays out;
    std::map<uint32_t, uint32_t> parameters;
    const auto first = static_cast<uint32_t>(plan_.places.size());
    for (uint32_t i = 0; i < step.places; ++i) {
      const Place place = plan_.places[step.first_place + i];
      const auto [at, is_new] = parameters.try_emplace(place.slot, out.count);
      if (is_new) {
        ++out.count;
        plan_.places.push_back({place.slot, 0, place.offset + place.bytes});
      }
      Place& slot = plan_.places[first + at->second];
      slot.bytes = std::max(slot.bytes, place.offset + place.bytes);
      out.addresses.push_back(array_of(at->second, place.offset));
    }
    if (out.count > kMostOpenClArrays && status_.ok())
      status_ = {COLLET_UNIMPLEMENTED,
                 ops + " of more than " + text(kMostOpenClArrays) + " arrays, the most of a kernel"};
    step.first_place = first;
    step.places = out.count;
    return out;
  }

  /// Returns a name that no kernel of the program has.
  std::string unique(const std::string& name) {
    const int used = used_[name]++;
    return used == 0 ? name : name + "_" + text(used);
  }
  FunctionId add(const std::string& name) {
    names_.push_back(name);
    return static_cast<FunctionId>(names_.size() - 1);
  }

  PlannedProgram& program_;
  LaunchPlan& plan_;
  const Target& target_;
  Unit unit_;
  std::vector<std::string> names_;                                ///< of the kernels
  std::map<std::string, int> used_;                               ///< how many kernels have this name or begin with it
  std::map<std::pair<FunctionId, int64_t>, FunctionId> kernels_;  ///< by function of the plan, and range
  Status status_;
};

}  // namespace

Status write_opencl(PlannedProgram& program, const Target& target, std::string& out) {
  return ProgramWriter(program, target).run(out);
}

std::string write_opencl_kernels(const std::vector<FunctionSource>& kernels,
                                 const std::vector<std::vector<uint64_t>>& offsets, const Target& target) {
  Unit unit(target, kOpenCl);
  for (size_t k = 0; k < kernels.size(); ++k) {
    std::vector<std::string> arrays;
    for (const uint64_t offset : offsets[k]) arrays.push_back(array_of(0, offset));
    const FunctionSource& s = kernels[k];
    if (const auto* const grid = std::get_if<GridKernel>(&s.body)) {
      write_grid_kernel(unit, *grid, head_of(s.name, 1, grid->schedule.block_threads), arrays, "");
      continue;
    }
    const auto& kernel = std::get<Kernel>(s.body);
    write_kernel(unit, kernel, s.name, "");
    KernelCall call;
    call.range = kernel.outer > 0 ? kernel.loops[0].size : 1;
    write_parts(unit, s.name, call, arrays, head_of(s.name, 1, 1));
  }
  return unit.text();
}

}  // namespace collet::codegen

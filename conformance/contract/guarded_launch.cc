// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>

#include "conformance/contract/differences.h"
#include "conformance/contract/program.h"

namespace collet::conformance {
namespace {

using hlo::Literal;

constexpr uint64_t kGuardBytes = 256;  // number of guard bytes before and after each array

uint64_t rounded(uint64_t value, uint64_t to) {
  return (value + to - 1) / to * to;
}

}  // namespace

GuardedLaunch::GuardedLaunch(Instance& instance, const TestProgram& program, const Executable& executable,
                             Placement placement)
    : instance_(instance),
      program_(program),
      executable_(executable),
      placement_(std::move(placement)),
      alignment_(instance.device(placement_.device).alignment()) {
  if (std::optional<Layouts> stated = layouts_of(instance, program, executable)) {
    layouts_ = *std::move(stated);
  } else {
    good_ = false;
    layouts_ = {};
    for (const hlo::Shape& shape : program.inputs()) layouts_.arguments.emplace_back(shape);
    for (const hlo::Shape& shape : program.results()) layouts_.results.emplace_back(shape);
  }
  std::vector<uint64_t> bytes;
  for (const ArrayLayout& one : layouts_.arguments) bytes.push_back(one.bytes());
  for (const Literal& constant : program.constants()) bytes.push_back(static_cast<uint64_t>(constant.byte_size()));
  absorbed_.assign(bytes.size(), false);
  for (const uint32_t constant : executable.absorbed) {
    const uint32_t number = collet_constant_at(program.get(), constant)->argument;
    if (number < absorbed_.size()) absorbed_[number] = true;
  }
  donated_.assign(bytes.size(), false);
  if (placement_.donate_all) std::fill_n(donated_.begin(), program.inputs().size(), true);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const bool shares = i < placement_.same_as.size() && placement_.same_as[i] != i;
    argument_slots_.push_back(shares ? argument_slots_[placement_.same_as[i]] : place(bytes[i], alignment_));
  }
  const std::vector<hlo::ProgramAlias> aliases = program.aliases();
  for (uint32_t i = 0; i < program.results().size(); ++i) {
    const auto alias = std::find_if(aliases.begin(), aliases.end(), [&](const hlo::ProgramAlias& one) {
      return one.result == i && (one.must || placement_.take_aliases);
    });
    if (alias == aliases.end()) {
      result_slots_.push_back(place(layouts_.results[i].bytes(), alignment_));
    } else {
      result_slots_.push_back(argument_slots_[alias->argument]);
      donated_[alias->argument] = true;
    }
  }
  workspace_slot_ = place(executable.workspace_bytes, std::max(executable.workspace_alignment, alignment_));
  allocate();
  for (size_t i = 0; i < argument_slots_.size(); ++i) {
    const bool has_layout = i < layouts_.arguments.size() && !layouts_.arguments[i].is_dense();
    collet_argument one = argument(argument_slots_[i], donated_[i] ? uint32_t{COLLET_ARG_DONATED} : 0, has_layout);
    if (absorbed_[i]) {
      one = {};
      one.flags = COLLET_ARG_ABSENT;
    }
    arguments_.push_back(one);
  }
  for (size_t i = 0; i < result_slots_.size(); ++i)
    results_.push_back(argument(result_slots_[i], 0, !layouts_.results[i].is_dense()));
  launch_.device = placement_.device;
  launch_.arguments = arguments_.data();
  launch_.results = results_.data();
  launch_.argument_count = static_cast<uint32_t>(arguments_.size());
  launch_.result_count = static_cast<uint32_t>(results_.size());
  launch_.workspace = argument(workspace_slot_, 0);
}

GuardedLaunch::Slot GuardedLaunch::place(uint64_t bytes, uint64_t alignment) {
  const size_t block = placement_.one_buffer ? 0 : sizes_.size();
  if (block >= sizes_.size()) sizes_.push_back(0);
  uint64_t& size = sizes_[block];
  const uint64_t guard = placement_.tight ? 0 : rounded(kGuardBytes, alignment);
  Slot slot{bytes, rounded(size + guard, alignment), block};
  // An odd multiple of the alignment, so that nothing has a larger one by chance.
  if (!placement_.tight && slot.offset / alignment % 2 == 0) slot.offset += alignment;
  size = slot.offset + bytes + (placement_.tight ? 0 : kGuardBytes);
  return slot;
}

void GuardedLaunch::allocate() {
  const uint64_t alignment = std::max(executable_.workspace_alignment, alignment_);
  for (const uint64_t bytes : sizes_) {
    Block block;
    if (bytes > 0) {
      block.buffer = instance_.alloc(bytes, placement_.device, alignment);
      good_ &= static_cast<bool>(block.buffer);
    }
    block.image.resize(bytes);
    blocks_.push_back(std::move(block));
  }
}

collet_argument GuardedLaunch::argument(const Slot& slot, uint32_t flags, bool has_layout) const {
  collet_argument out{};
  out.flags = flags;
  out.layout = has_layout ? 1 : 0;
  if (slot.bytes == 0) return out;
  out.buffer = blocks_[slot.block].buffer.handle();
  out.offset = slot.offset;
  out.bytes = slot.bytes;
  return out;
}

bool GuardedLaunch::fill(const std::vector<Literal>& inputs, uint64_t seed) {
  if (!good_) return false;
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Bytes& image = blocks_[i].image;
    if (seed % 2 == 0) {
      std::fill(image.begin(), image.end(), 0xff);  // NaN in each float
    } else {
      image = pattern(image.size(), seed * 100 + i);
    }
  }
  for (size_t i = 0; i < argument_slots_.size(); ++i) {
    const Literal& value = i < inputs.size() ? inputs[i] : program_.constants()[i - inputs.size()];
    if (value.byte_size() == 0) continue;
    if (i < inputs.size())
      layouts_.arguments[i].write(value, image(argument_slots_[i]));
    else
      std::copy_n(value.bytes(), value.byte_size(), image(argument_slots_[i]));
  }
  std::vector<collet_copy_region> regions;
  for (const Block& block : blocks_)
    if (block.buffer) regions.push_back(region(at_host(block.image.data()), at(block.buffer), block.image.size()));
  return regions.empty() || instance_.copy(regions);
}

collet_status GuardedLaunch::execute(std::string* message) {
  static std::atomic<uint64_t> run_id{1};
  const collet_status status = checked_call(
      instance_.contract(), "execute",
      [&](collet_error* error) {
        return instance_.table().execute(executable_.handle(), &launch_, 1, run_id++, error);
      },
      message);
  if (status == COLLET_OK) {
    for (const uint32_t op : entry_ops(program_.get()))
      instance_.contract().note_use(use_of(program_.get(), collet_op_at(program_.get(), op)), {.ran = true});
  }
  return status;
}

bool GuardedLaunch::is_untouched(const std::string& what, Promise promise) {
  for (const Block& block : blocks_) {
    if (!block.buffer) continue;
    const std::string wrong = difference_text(instance_.read(block.buffer), block.image);
    if (!instance_.contract().check(wrong.empty(), promise, "{} changed a buffer: {}", what, wrong)) return false;
  }
  return true;
}

std::vector<Bytes> GuardedLaunch::read_results() {
  std::vector<Bytes> out;
  for (size_t i = 0; i < result_slots_.size(); ++i) {
    const Slot& slot = result_slots_[i];
    Bytes bytes(slot.bytes);
    if (slot.bytes > 0) instance_.read(blocks_[slot.block].buffer, slot.offset, bytes.data(), slot.bytes);
    if (slot.bytes > 0 && !layouts_.results[i].is_dense()) {
      const Literal dense = layouts_.results[i].read(bytes.data());
      const auto* first = reinterpret_cast<const uint8_t*>(dense.bytes());
      bytes.assign(first, first + dense.byte_size());
    }
    out.push_back(std::move(bytes));
  }
  return out;
}

bool GuardedLaunch::judge_results(const std::vector<Literal>& inputs, const std::string& what, const Bound& bound) {
  std::vector<Bytes> now(blocks_.size());
  for (const Slot& slot : result_slots_)
    if (slot.bytes > 0 && now[slot.block].empty()) now[slot.block] = instance_.read(blocks_[slot.block].buffer);
  return judge_results(inputs, now, what, bound);
}

bool GuardedLaunch::judge_results(const std::vector<Literal>& inputs, const std::vector<Bytes>& now,
                                  const std::string& what, const Bound& bound) {
  Contract& c = instance_.contract();
  const Expected<std::vector<Literal>> expected = program_.evaluate(inputs);
  if (!expected.ok()) {
    c.fault(expected.status());
    return false;
  }
  const bool flushes = instance_.device(placement_.device).has(COLLET_TRAIT_FLUSHES_DENORMALS);
  for (size_t i = 0; i < result_slots_.size(); ++i) {
    const Slot& slot = result_slots_[i];
    if (slot.bytes == 0) continue;
    const Literal got = layouts_.results[i].read(now[slot.block].data() + slot.offset);
    const Comparison compared = compare({(*expected)[i], {}, {}}, got, bound, flushes);
    const bool aliased = std::any_of(argument_slots_.begin(), argument_slots_.end(), [&](const Slot& argument) {
      return argument.block == slot.block && argument.offset == slot.offset && argument.bytes > 0;
    });
    if (!c.check(compared.agrees, aliased ? Promise::ALIAS : Promise::VERDICT_EXACT,
                 "{}: result {} is {} at {} and should be {}; {} of {} elements are wrong", what, i, compared.got,
                 index_text(got.shape(), compared.first), compared.expected, compared.bad, compared.elements))
      return false;
  }
  return true;
}

bool GuardedLaunch::judge(const std::vector<Literal>& inputs, const std::string& what, const Bound& bound) {
  Contract& c = instance_.contract();
  std::vector<Bytes> now;
  for (const Block& block : blocks_) now.push_back(block.buffer ? instance_.read(block.buffer) : Bytes());
  if (!judge_results(inputs, now, what, bound)) return false;
  // Memory that the executable may write is not compared; all other memory must be unchanged.
  const auto allow = [&](const Slot& slot) {
    if (slot.bytes > 0) std::copy_n(image(slot), slot.bytes, now[slot.block].data() + slot.offset);
  };
  for (const Slot& slot : result_slots_) allow(slot);
  for (size_t i = 0; i < argument_slots_.size(); ++i)
    if (donated_[i]) allow(argument_slots_[i]);
  allow(workspace_slot_);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    const size_t wrong = first_difference(now[i], blocks_[i].image);
    if (wrong == SIZE_MAX) continue;
    for (size_t a = 0; a < argument_slots_.size(); ++a) {
      const Slot& slot = argument_slots_[a];
      const bool inside = slot.block == i && wrong >= slot.offset && wrong < slot.offset + slot.bytes;
      if (!c.check(!inside, Promise::DONATED,
                   "{}: byte {} of argument {}, which is not donated, was {:#x} and is {:#x}", what,
                   wrong - slot.offset, a, blocks_[i].image[wrong], now[i][wrong]))
        return false;
    }
    const bool at_workspace = workspace_slot_.bytes > 0 && workspace_slot_.block == i &&
                              wrong + kGuardBytes >= workspace_slot_.offset &&
                              wrong < workspace_slot_.offset + workspace_slot_.bytes + kGuardBytes;
    if (at_workspace) {
      c.check(false, Promise::WORKSPACE,
              "{}: byte {} of a workspace of {} bytes, which is outside, was {:#x} and is {:#x}", what,
              static_cast<int64_t>(wrong) - static_cast<int64_t>(workspace_slot_.offset), workspace_slot_.bytes,
              blocks_[i].image[wrong], now[i][wrong]);
    } else {
      c.check(false, Promise::ARGUMENT_BYTES,
              "{}: byte {} of a buffer, which no result or workspace has, was {:#x} and is {:#x}", what, wrong,
              blocks_[i].image[wrong], now[i][wrong]);
    }
    return false;
  }
  return true;
}

bool GuardedLaunch::run(uint64_t seed, const std::string& what, const Bound& bound) {
  const std::vector<Literal> inputs = program_.draw(seed);
  // Arguments that share memory have the same value.
  std::vector<Literal> shared = inputs;
  for (size_t i = 0; i < placement_.same_as.size() && i < shared.size(); ++i) shared[i] = shared[placement_.same_as[i]];
  return run_with(shared, seed, what, bound);
}

bool GuardedLaunch::run_with(const std::vector<Literal>& inputs, uint64_t seed, const std::string& what,
                             const Bound& bound) {
  if (!fill(inputs, seed)) return false;
  std::string message;
  const collet_status status = execute(&message);
  if (!instance_.contract().check(status == COLLET_OK, Promise::EXECUTE, "{}: execute gave status {}: {}", what, status,
                                  message))
    return false;
  return judge(inputs, what, bound);
}

}  // namespace collet::conformance

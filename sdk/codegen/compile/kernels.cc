// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_transform.h>
#include <collet/codegen/kernel_verify.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "sdk/codegen/compile/pipeline.h"
#include "sdk/codegen/kernel/elementwise.h"
#include "sdk/codegen/matmul/blocking.h"
#include "sdk/codegen/matmul/product_schedule.h"
#include "sdk/codegen/matmul/zero_parts.h"
#include "sdk/codegen/schedule/actions.h"
#include "sdk/codegen/schedule/grid.h"
#include "sdk/codegen/schedule/lanes.h"
#include "sdk/codegen/schedule/neighbours.h"
#include "sdk/codegen/schedule/processor.h"

namespace collet::codegen {
namespace {

/// True for ops that take several times as long as an addition.
bool is_slow(const Expr& e) {
  return e.op == ExprOp::kOp && (is_expensive(e.opcode) || e.opcode == COLLET_OP_DIVIDE);
}

double estimate_ns(const Kernel& kernel) {
  double points = 1;
  for (const auto& l : kernel.loops) points *= static_cast<double>(l.size);
  double ops = 1;
  for (const auto& i : kernel.exprs) {
    ops += is_slow(i) ? 4 : i.op == ExprOp::kOp ? 1.5 : i.op == ExprOp::kLoad ? 1 : 0.2;
  }
  return points * ops / (kernel.lanes * 1.5);
}

}  // namespace

ValueId Compiler::temporary(uint32_t element, Dims dims) {
  const ValueId v = graph_.add_value(make_type(element, std::move(dims)));
  range_.resize(graph_.values.size(), kNone);
  fusion_.in_memory.resize(graph_.values.size(), true);
  return v;
}

std::string Compiler::add_packing(ProductOperand& o, Draft& d) {
  collapse_loops(o.pack.kernel, 1);
  o.pack.kernel.in_parts = true;
  choose_lanes(o.pack.kernel, target_);
  schedule(o.pack.kernel);
  for (ValueId v : o.pack.buffers) {
    if (v != kNone) d.ranges.push_back(read(v));
  }
  return sources_[function_of(o.pack.kernel)].name;
}

std::optional<Epilogue> Compiler::take_epilogue(const Product& p, Draft& d) {
  Epilogue e;
  if (!epilogue_ || p.converts || !make_epilogue(*epilogue_, p, e)) return std::nullopt;
  d.ranges.push_back(write(e.target));
  add_buffers(*epilogue_, d);
  for (ValueId v : e.buffers) {
    if (v != p.result && v != e.target) plan_->traffic_bytes += bytes_of(v);
  }
  // Allows computing the result directly in the target's memory, if that is free at this time.
  buffers_.allow(range(p.result), range(e.target), time_);
  copies_.emplace_back(range(p.result), range(e.target));
  epilogue_ = nullptr;
  return e;
}

void Compiler::add_micros(const Product& p, const Epilogue* epilogue, BlockedProduct& call) {
  const bool in_registers = epilogue && call.depth_blocks() == 1 && fits_registers(*epilogue, p, target_.tuning);
  for (int column = 0; column < 2; ++column) {
    if (column ? call.last_columns == 0 : call.columns < call.panel) continue;
    const int64_t columns = column ? call.last_columns : p.panel();
    for (int row = 0; row < 2; ++row) {
      if (row ? call.last_rows == 0 : call.rows < call.tile_rows) continue;
      MicroKernel m = p.micro(row ? call.last_rows : p.tile_rows, columns);
      m.accumulates = !in_registers;
      m.fetches = call.copies_b && column == 0;
      call.micro[row][column] = sources_[function_of(m, in_registers ? epilogue : nullptr)].name;
    }
    const MicroKernel shape = p.micro(0, columns);
    MicroKernel m;  // only the fields that are set here matter to a function without rows
    m.type = shape.type;
    m.rows = 0;
    m.vectors = shape.vectors;
    m.lanes = shape.lanes;
    m.masked = shape.masked;
    if (call.group_blocks != 0) call.fold[column] = sources_[function_of(m, nullptr)].name;
    if (epilogue && !in_registers) call.after[column] = sources_[function_of(m, epilogue)].name;
  }
}

FunctionId Compiler::function_of(const MicroKernel& kernel, const Epilogue* epilogue) {
  if (!epilogue) {
    const auto [it, fresh] = micros_.try_emplace(kernel, kNoFunction);
    if (fresh) it->second = add_function({name_of(kernel), MicroSource{kernel, std::nullopt}, true});
    return it->second;
  }
  const auto [it, fresh] =
      epilogues_.try_emplace({kernel, epilogue->kernel, epilogue->product, epilogue->value}, kNoFunction);
  if (fresh) {
    it->second = add_function({"tile" + std::to_string(sources_.size()), MicroSource{kernel, *epilogue}, false});
  }
  return it->second;
}

FunctionId Compiler::function_of(BlockedProduct product, const std::string& name) {
  const auto [it, fresh] = products_.try_emplace(std::move(product), kNoFunction);
  if (fresh) it->second = add_function({name, it->first, false});
  return it->second;
}

FunctionId Compiler::add_function(FunctionSource source) {
  plan_->functions.push_back(source.name);
  if (!source.shared) source.ops = ops_;
  sources_.push_back(std::move(source));
  return static_cast<FunctionId>(sources_.size() - 1);
}

std::string Compiler::names_of(const std::vector<NodeId>& nodes) const {
  constexpr size_t kMost = 8;
  std::vector<NodeId> all;
  std::set<NodeId> seen;
  // Operands that are not in memory are computed where they are read; they come first.
  const std::function<void(NodeId)> visit = [&](NodeId n) {
    if (all.size() > kMost || !seen.insert(n).second) return;
    for (const ValueId v : graph_.nodes[n].operands) {
      if (graph_.values[v].def != kNone && !is_input(v)) visit(graph_.values[v].def);
    }
    all.push_back(n);
  };
  for (const NodeId n : nodes) visit(n);
  std::string out;
  for (size_t i = 0; i < all.size() && i < kMost; ++i) {
    const collet_op* const op = graph_.nodes[all[i]].op;
    out += (i == 0 ? "" : ", ") + std::string(collet_op_name(graph_.nodes[all[i]].opcode));
    if (op && op->name.count) out += " '" + std::string(collet_string(program_, op->name), op->name.count) + "'";
  }
  return all.size() > kMost ? out + " and more" : out;
}

bool Compiler::is_fixed(const KernelPlan& k) const {
  if (!scope_) return false;
  return std::all_of(k.buffers.begin(), k.buffers.end(), [&](ValueId v) {
    const auto& fixed = scope_->fixed;
    const bool written = std::find(k.writes.begin(), k.writes.end(), v) != k.writes.end();
    return written || graph_.value(v).constant || std::find(fixed.begin(), fixed.end(), v) != fixed.end();
  });
}

void Compiler::add_before_loop(KernelPlan& k) {
  const int now = std::exchange(time_, scope_->begin);
  add_kernel(k, *scope_->before);
  time_ = std::max(now, time_);
  for (ValueId v : k.writes) scope_->kept.push_back(range(v));
}

void Compiler::add_preparation(KernelPlan& k, Drafts& drafts) {
  if (is_fixed(k)) {
    add_before_loop(k);
  } else {
    add_kernel(k, drafts);
  }
}

Compiler::PreparedOperands Compiler::prepare_operands(Product& p, const BlockedProduct& call, Drafts& drafts) {
  PreparedOperands made;
  made.b = p.b.value;
  if (p.b.packed && !call.packs_b) {
    made.b = temporary(p.type, {p.b.batches * p.b.matrix});
    p.b.pack.buffers[p.b.pack_output] = made.b;
    p.b.pack.writes = {made.b};
    add_preparation(p.b.pack, drafts);
    if (p.starts() == Starts::kColumns) {
      p.b.start.buffers.back() = made.b;
      p.b.start.writes = {made.b};
      add_preparation(p.b.start, drafts);
    }
  }
  if (call.row_starts) {
    made.starts = temporary(p.type, {p.a.batches * p.rows});
    p.a.start.buffers.back() = made.starts;
    p.a.start.writes = {made.starts};
    add_preparation(p.a.start, drafts);
  }
  if (call.checks_parts) {
    made.finite = temporary(COLLET_TYPE_PRED, {});
    KernelPlan k = finite_kernel(p, call, made.b, made.finite);
    add_kernel(k, drafts);
  }
  return made;
}

Compiler::Draft Compiler::product_step(Product& p, BlockedProduct call, const PreparedOperands& operands,
                                       ValueId result) {
  Draft d;
  d.step.kind = StepKind::kKernel;
  if (p.a.packed) {
    call.pack_a = add_packing(p.a, d);
  } else {
    d.ranges.push_back(read(p.a.value));
  }
  if (call.packs_b) {
    call.pack_b = add_packing(p.b, d);
  } else {
    d.ranges.push_back(read(operands.b));
  }
  if (call.copies_b) {
    Kernel copy = panel_copy(p);
    copy.in_parts = true;
    choose_lanes(copy, target_);
    schedule(copy);
    call.copy_b = sources_[function_of(copy)].name;
  }
  d.ranges.push_back(write(result));
  RangeId scratch = buffers_.add(std::max<uint64_t>(call.scratch_bytes(), 64), time_);
  for (RangeId r : d.ranges) plan_->traffic_bytes += buffers_.bytes(r);
  d.ranges.push_back(scratch);
  if (operands.starts != kNone) d.ranges.push_back(read(operands.starts));
  if (operands.finite != kNone) d.ranges.push_back(read(operands.finite));
  const std::optional<Epilogue> epilogue = take_epilogue(p, d);
  call.epilogue = epilogue.has_value();
  add_micros(p, epilogue ? &*epilogue : nullptr, call);
  KernelCall& step = d.step.kernel;
  step.range = call.jobs();
  step.cost_ns = call.cost_ns;
  step.parallel = call.threads > 1 && step.range > 1;
  step.function = function_of(std::move(call), next_product());
  ++product_count_;
  ++plan_->kernels;
  return d;
}

void Compiler::add_product(Product& p, const std::string& key, Drafts& drafts) {
  const ValueId result = p.converts ? temporary(p.type, graph_.type(p.result).dims) : p.result;
  BlockedProduct call = choose_blocking(p, target_);
  if (options_.list_schedules)
    list_schedule(next_product(), key, print_actions(schedule_of(p, call)), neighbour_schedules(p, call, target_));
  const PreparedOperands operands = prepare_operands(p, call, drafts);
  ++time_;
  drafts.push_back(product_step(p, std::move(call), operands, result));
  if (p.converts) {
    KernelPlan k = convert_kernel(graph_, result, p.result);
    add_kernel(k, drafts);
  }
}

bool Compiler::is_better_apart(const KernelPlan& reduction, const KernelPlan& epilogue) const {
  if (!pipeline_.has_lanes || reduction.kernel.reductions.empty() ||
      inner_points(reduction.kernel) > target_.tuning.fused_epilogue_row)
    return false;
  const auto& exprs = epilogue.kernel.exprs;
  if (std::none_of(exprs.begin(), exprs.end(), is_slow)) return false;
  Kernel scheduled = reduction.kernel;
  collapse_loops(scheduled);
  choose_lanes(scheduled, target_);
  return scheduled.lanes > 1 && scheduled.lane_loop >= scheduled.outer;
}

bool Compiler::reads_in_place(const KernelPlan& k, const std::pair<ValueId, ValueId>& pair) {
  if (std::find(k.in_place.begin(), k.in_place.end(), pair) == k.in_place.end()) return false;
  // Another value that shares the operand's memory may be read at any position.
  return std::none_of(k.buffers.begin(), k.buffers.end(), [&](ValueId v) {
    return v != pair.first && v != pair.second && range_[v] != kNone && range_[v] == range_[pair.first];
  });
}

void Compiler::add_kernel(KernelPlan& k, Drafts& drafts, bool again) {
  // The copies have the same time as the kernel if it may write over the memory that they read from.
  const bool at_once = !k.copies.empty() && std::all_of(k.copies.begin(), k.copies.end(),
                                                        [&](const auto& c) { return reads_in_place(k, c); });
  if (!k.copies.empty()) ++time_;
  for (auto [from, to] : k.copies) copy_ranges(range(from), write(to), bytes_of(to), drafts);
  Kernel& kernel = k.kernel;
  bool empty = false;
  bool reduces = !kernel.reductions.empty();
  for (size_t l = 0; l < kernel.loops.size(); ++l)
    empty = empty || (kernel.loops[l].size == 0 && (l < kernel.outer || !reduces));
  if (empty) {
    for (ValueId v : k.writes) write(v);
    return;
  }
  verify(kernel, "lowering");
  PipelineWork work{k, drafts, at_once || again};
  const size_t depth = history_.size();
  for (const Pipeline::KernelStep& step : pipeline_.kernel_steps) {
    history_.emplace_back(step.name);
    const PipelineOutcome outcome = (this->*step.run)(work);
    if (outcome == PipelineOutcome::kReplaced) break;
    if (outcome == PipelineOutcome::kUnchanged) history_.pop_back();
  }
  history_.resize(depth);
}

void Compiler::add_parts(KernelPlan& parts, KernelPlan& rest, Drafts& drafts) {
  ++time_;
  Draft d;
  for (KernelPlan* k : {&parts, &rest}) {
    collapse_loops(k->kernel);
    compare_as_integers(k->kernel, target_.tuning.compared_row);
    choose_lanes(k->kernel, target_);
    schedule(k->kernel);
    add_buffers(*k, d);
    for (ValueId v : k->buffers) {
      const bool between = std::find(parts.writes.begin(), parts.writes.end(), v) != parts.writes.end();
      if (!between) plan_->traffic_bytes += bytes_of(v);
    }
  }
  d.step.kernel.function = function_of(parts.kernel);
  d.step.kernel.tail = function_of(rest.kernel);
  describe(parts.kernel, d.step);
  d.step.kernel.tail_place = static_cast<uint32_t>(parts.buffers.size());
  d.step.kernel.tail_range = rest.kernel.outer > 0 ? rest.kernel.loops[0].size : 1;
  ++plan_->kernels;
  drafts.push_back(std::move(d));
}

void Compiler::add_buffers(const KernelPlan& k, Draft& d) {
  for (ValueId v : k.buffers) {
    const bool written = std::find(k.writes.begin(), k.writes.end(), v) != k.writes.end();
    d.ranges.push_back(written ? write(v) : read(v));
  }
}

void Compiler::describe(const Kernel& kernel, Step& step) const {
  step.kind = StepKind::kKernel;
  (this->*pipeline_.describe)(kernel, step);
}

void Compiler::describe_grid(const Kernel&, Step& step) const {
  KernelCall& call = step.kernel;
  const GridSchedule& schedule = std::get<GridKernel>(sources_[call.function].body).schedule;
  call.blocks = schedule.blocks;
  call.block_threads = schedule.block_threads;
  call.shared_bytes = schedule.shared_bytes;
  call.maps = schedule.maps;
}

void Compiler::describe_call(const Kernel& kernel, Step& step) const {
  KernelCall& call = step.kernel;
  call.range = kernel.outer > 0 ? kernel.loops[0].size : 1;
  call.grain = grain_of(std::get<Kernel>(sources_[call.function].body));
  call.cost_ns = estimate_ns(kernel);
  call.parallel = !kernel.sequential && kernel.outer > 0 && call.range > call.grain && call.cost_ns > target_.awake_ns;
}

void Compiler::schedule(Kernel& kernel) const {
  schedule_for(kernel, target_, options_.rules_off);
}

std::string Compiler::key_of(const Kernel& kernel) const {
  return !tuned_.empty() || options_.list_schedules ? schedule_key(kernel) : std::string();
}

std::optional<std::string> Compiler::given_schedule(const std::string& name, const std::string& key) {
  if (const auto given = schedules_.extract(name); !given.empty()) return given.mapped();
  if (const auto given = tuned_.find(key); given != tuned_.end()) return given->second;
  return std::nullopt;
}

void Compiler::schedule_by_hand(const std::string& name, Kernel& kernel) {
  if (schedules_.empty() && tuned_.empty()) return;
  const std::optional<std::string> given = given_schedule(name, key_of(kernel));
  if (!given) return;
  const Status applied = apply_actions(*given, kernel);
  if (!applied.ok() && defect_.ok()) defect_ = {applied.code(), "the schedule of " + name + ": " + applied.message()};
  by_hand_.insert(name);
}

bool Compiler::find_scheduled_product(const KernelPlan& plan, const std::string& key, Product& out) {
  if (!find_product(plan, graph_, target_, out, 0, {}, &why_no_product_)) return false;
  const std::string name = next_product();
  const std::optional<std::string> given = given_schedule(name, key);
  if (!given) return true;
  ProductSchedule by_hand;
  const Status read = read_actions(*given, by_hand);
  if (!read.ok()) {
    if (defect_.ok()) defect_ = {read.code(), "the schedule of " + name + ": " + read.message()};
    return true;
  }
  Product changed;
  const bool is_there = find_product(plan, graph_, target_, changed, 0, by_hand);
  if (is_there) out = std::move(changed);
  return true;
}

void Compiler::list_schedule(const std::string& name, const std::string& key, const std::string& actions,
                             const std::vector<std::string>& neighbours) {
  list_ += name + " " + key + "\n";
  if (!listed_.insert(key).second) return;
  list_ += "= " + actions + "\n";
  for (const std::string& n : neighbours) list_ += "+ " + n + "\n";
}

void Compiler::verify(const Kernel& kernel, const char* stage) {
  if (!options_.verify || !defect_.ok()) return;
  const Status verified = verify_kernel(kernel);
  if (!verified.ok()) defect_ = {COLLET_INTERNAL, std::string("after ") + stage + ": " + verified.message()};
}

FunctionId Compiler::function_of(const Kernel& kernel) {
  verify(kernel, "scheduling");
  const auto [it, fresh] = kernels_.try_emplace(kernel, kNoFunction);
  if (!fresh) return it->second;
  const std::string name = "kernel" + std::to_string(sources_.size());
  if (options_.keep_artifacts) histories_[name] = {history_, why_no_product_};
  if (pipeline_.has_lanes) {
    Kernel scheduled = kernel;
    schedule_by_hand(name, scheduled);
    if (options_.list_schedules)
      list_schedule(name, key_of(scheduled), print_actions(scheduled), neighbour_schedules(scheduled, target_));
    it->second = add_function({name, std::move(scheduled), false});
  } else {
    GridKernel grid = schedule_grid(kernel, target_.grid);
    schedule(grid.kernel);
    it->second = add_function({name, std::move(grid), false});
  }
  return it->second;
}

}  // namespace collet::codegen

// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/compile/compiler.h"

#include <collet/codegen/kernel_text.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "sdk/codegen/compile/pipeline.h"
#include "sdk/codegen/fusion/print.h"
#include "sdk/codegen/graph/print.h"
#include "sdk/codegen/launch/print.h"
#include "sdk/codegen/lower/collective.h"
#include "sdk/codegen/lower/factorize.h"
#include "sdk/codegen/routines/routine.h"
#include "sdk/codegen/schedule/actions.h"
#include "sdk/codegen/schedule/processor.h"

namespace collet::codegen {

Compiler::Compiler(const collet_program* program, const Target& target, const CompileOptions& options,
                   PlannedProgram& out)
    : program_(program),
      target_(target),
      pipeline_(pipeline_for(target, options.form)),
      options_(options),
      plan_(&out.plan),
      sources_(out.sources),
      constant_arrays_(out.constants),
      stages_(out.stages) {}

Status Compiler::run() {
  if (const Status read = read_schedules(options_.schedules, schedule_target(target_), schedules_); !read.ok())
    return {read.code(), "schedules: " + read.message()};
  COLLET_CODEGEN_TRY(read_tuning(options_.tuning, schedule_target(target_), tuned_));
  for (auto it = schedules_.begin(); it != schedules_.end();) {
    const auto at = it++;
    if (is_schedule_key(at->first)) tuned_[at->first] = std::move(schedules_.extract(at).mapped());
  }
  COLLET_CODEGEN_TRY(build_graph(program_, graph_));
  graph_.tf32_by_default = target_.grid.tf32_by_default;
  range_.assign(graph_.values.size(), kNone);
  const Block& entry = graph_.blocks[0];
  plan_->arguments = static_cast<uint32_t>(entry.arguments.size());
  plan_->results = static_cast<uint32_t>(entry.results.size());
  for (uint32_t i = 0; i < plan_->arguments; ++i) {
    const ValueId v = entry.arguments[i];
    range_[v] = buffers_.add(bytes_of(v), -1, BufferPlanner::Kind::kArgument, i);
    plan_->argument_bytes.push_back(bytes_of(v));
  }
  Drafts drafts;
  COLLET_CODEGEN_TRY(block(0, drafts));
  COLLET_CODEGEN_TRY(defect_);
  if (!schedules_.empty())
    return {COLLET_INVALID_ARGUMENT, "schedules: this program has no '" + schedules_.begin()->first + "'"};
  finish_entry(drafts);
  coalesce_copies();
  uint32_t places = count_places(drafts);
  const uint64_t table = (places * sizeof(char*) + 63) / 64 * 64;
  plan_->workspace_bytes = buffers_.assign_offsets(table);
  resolve(drafts, plan_->steps);
  COLLET_CODEGEN_TRY(store_constants());
  if (options_.keep_artifacts) keep_stages();
  return {};
}

RangeId Compiler::range(ValueId v) {
  if (range_[v] == kNone) {
    const auto& value = graph_.value(v);
    range_[v] = buffers_.add(bytes_of(v), -1, BufferPlanner::Kind::kConstant, 0, constant_bytes_);
    constants_.push_back(v);
    constant_bytes_ += (static_cast<uint64_t>(value.type.bytes()) + 63) / 64 * 64;
  }
  return range_[v];
}

RangeId Compiler::read(ValueId v) {
  RangeId w = range(v);
  buffers_.use(w, time_);
  return w;
}

RangeId Compiler::write(ValueId v) {
  if (range_[v] == kNone) range_[v] = buffers_.add(bytes_of(v), time_);
  buffers_.use(range_[v], time_);
  return range_[v];
}

Status Compiler::block(BlockId id, Drafts& drafts) {
  const Block& b = graph_.blocks[id];
  fuse_block(graph_, b, {options_.fuse, pipeline_.splits_edges, near_points(), target_.tuning}, fusion_);
  // A copy, because bodies of control flow replace fusion_ while they are compiled.
  const std::vector<FusionGroup> groups = fusion_.groups;
  if (options_.keep_artifacts) groups_text_ += "block " + std::to_string(id) + "\n" + print_groups(graph_, groups);
  const Readers readers = readers_in(b, groups);
  std::vector<bool> done(groups.size(), false);
  Groups all{b, groups, readers, done, {}};
  for (const Pipeline::GroupStep& step : pipeline_.group_steps) {
    if (options_.fuse || !step.if_fusing) (this->*step.run)(all);
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    if (done[i]) continue;
    ops_ = names_of(groups[i].nodes);
    if (const auto found = all.row_blocks.find(i); found != all.row_blocks.end()) {
      add_row_blocks(found->second, drafts);
      continue;
    }
    KernelPlan kernel;
    size_t taken = epilogue_of(b, groups, readers, i, kernel);
    bool there = false;
    if (taken < groups.size()) COLLET_CODEGEN_TRY(make_ready(groups, readers, kernel, i, done, drafts, there));
    if (!there) taken = groups.size();
    if (there) {
      epilogue_ = &kernel;
      ops_ = names_of(groups[i].nodes) + ", " + names_of(groups[taken].nodes);
    }
    COLLET_CODEGEN_TRY(group(groups[i], drafts));
    if (taken < groups.size()) done[taken] = epilogue_ == nullptr;
    epilogue_ = nullptr;
  }
  return {};
}

Compiler::Readers Compiler::readers_in(const Block& block, const std::vector<FusionGroup>& groups) const {
  Readers readers;
  for (NodeId n : block.nodes) {
    if (!fusion_.alive[n]) continue;
    for (ValueId v : graph_.nodes[n].operands) {
      auto& users = readers.users[v];
      if (users.empty() || users.back() != n) users.push_back(n);
    }
  }
  for (size_t u = 0; u < groups.size(); ++u) {
    for (NodeId n : groups[u].nodes) readers.group_of.try_emplace(n, u);
  }
  return readers;
}

size_t Compiler::only_reader(const Block& block, const Readers& readers, ValueId v, std::vector<size_t>* names) const {
  constexpr size_t none = SIZE_MAX;
  size_t found = none;
  std::vector<ValueId> open{v};
  for (size_t at = 0; at < open.size(); ++at) {
    const ValueId x = open[at];
    if (std::find(block.results.begin(), block.results.end(), x) != block.results.end()) return none;
    const auto users = readers.users.find(x);
    if (users == readers.users.end()) continue;
    for (NodeId n : users->second) {
      const Node& node = graph_.nodes[n];
      const ValueId result = node.results[0];
      if (fusion_.alias[result]) {
        const auto group = readers.group_of.find(n);
        if (!names || group == readers.group_of.end()) return none;
        names->push_back(group->second);
        open.push_back(result);
        continue;
      }
      if (node.results.size() == 1 && !fusion_.in_memory[result]) {
        open.push_back(result);
        continue;
      }
      const auto holder = readers.group_of.find(n);
      if (holder == readers.group_of.end() || (found != none && found != holder->second)) return none;
      found = holder->second;
    }
    if (open.size() > target_.tuning.searched_nodes) return none;
  }
  return found;
}

size_t Compiler::epilogue_of(const Block& block, const std::vector<FusionGroup>& groups, const Readers& readers,
                             size_t at, KernelPlan& kernel) const {
  const Node& n = graph_.nodes[groups[at].nodes[0]];
  const size_t none = groups.size();
  if (groups[at].fused || (n.opcode != COLLET_OP_DOT && n.opcode != COLLET_OP_CONVOLUTION)) return none;
  const ValueId product = n.results[0];
  const size_t reader = only_reader(block, readers, product);
  if (reader >= none || reader <= at || !groups[reader].fused) return none;
  const FusedValues& values = groups[reader].values;
  if (std::find(values.inner.begin(), values.inner.end(), true) != values.inner.end()) return none;
  if (!fused_kernel(graph_, values, [this](ValueId v) { return is_input(v); }, kernel)) return none;
  const Kernel& k = kernel.kernel;
  if (kernel.writes.size() != 1 || k.stores.size() != 1 || k.stores[0].mask != kNoExpr) return none;
  if (!k.updates.empty() || !k.reductions.empty() || !kernel.copies.empty()) return none;
  const std::pair<ValueId, ValueId> in_place{product, kernel.writes[0]};
  if (std::find(kernel.in_place.begin(), kernel.in_place.end(), in_place) == kernel.in_place.end()) return none;
  return reader;
}

bool Compiler::is_ready(const FusionGroup& u) const {
  std::vector<ValueId> open;
  for (NodeId n : u.nodes) {
    const auto& operands = graph_.nodes[n].operands;
    open.insert(open.end(), operands.begin(), operands.end());
  }
  for (size_t at = 0; at < open.size(); ++at) {
    const ValueId v = open[at];
    if (graph_.value(v).constant || range_[v] != kNone) continue;
    const Node* def = graph_.def(v);
    if (!def || open.size() > target_.tuning.searched_nodes) return false;
    if (std::find(u.nodes.begin(), u.nodes.end(), graph_.values[v].def) != u.nodes.end()) continue;
    if (fusion_.in_memory[v]) return false;
    open.insert(open.end(), def->operands.begin(), def->operands.end());
  }
  return true;
}

Status Compiler::make_ready(const std::vector<FusionGroup>& groups, const Readers& readers, const KernelPlan& kernel,
                            size_t at, std::vector<bool>& done, Drafts& drafts, bool& there) {
  const ValueId product = graph_.nodes[groups[at].nodes[0]].results[0];
  std::vector<size_t> first;
  there = false;
  for (ValueId v : kernel.buffers) {
    const bool known = range_[v] != kNone || graph_.value(v).constant || v == product || v == kernel.writes[0];
    if (known) continue;
    const auto holder = readers.group_of.find(graph_.values[v].def);
    if (holder == readers.group_of.end() || holder->second <= at || !groups[holder->second].fused) return {};
    if (done[holder->second] || !is_ready(groups[holder->second])) return {};
    if (std::find(first.begin(), first.end(), holder->second) == first.end()) first.push_back(holder->second);
  }
  for (size_t u : first) {
    COLLET_CODEGEN_TRY(group(groups[u], drafts));
    done[u] = true;
  }
  there = true;
  return {};
}

Status Compiler::group(const FusionGroup& u, Drafts& drafts) {
  const Node& n = graph_.nodes[u.nodes[0]];
  if (!u.fused) return node(n, drafts);
  const bool reshapes = u.nodes.size() == 1 && n.opcode == COLLET_OP_RESHAPE;
  if (reshapes && is_input(n.operands[0]) && graph_.def(n.operands[0])) {  // usually both share memory
    copy(range(n.operands[0]), n.results[0], drafts);
    return {};
  }
  KernelPlan kernel;
  if (!fused_kernel(graph_, u.values, [this](ValueId v) { return is_input(v); }, kernel)) {
    return {COLLET_INTERNAL, "a fusion cannot be compiled"};
  }
  kernel.has_edges = std::any_of(u.nodes.begin(), u.nodes.end(), [&](NodeId id) { return fusion_.has_edges[id]; });
  Product product;
  const std::string key = key_of(kernel.kernel);
  if (u.nodes.size() == 1 && pipeline_.has_micro_kernels && find_scheduled_product(kernel, key, product)) {
    add_product(product, key, drafts);
  } else {
    add_kernel(kernel, drafts);
  }
  why_no_product_ = nullptr;
  return {};
}

bool Compiler::take_host_value(const Node& n, Drafts& drafts) {
  if (!is_host_value(graph_, n)) return false;
  add_host_value(n, drafts);
  return true;
}

bool Compiler::take_collective(const Node& n, Drafts& drafts) {
  if (!is_collective(n.opcode)) return false;
  add_collective(n, drafts);
  return true;
}

bool Compiler::take_scalar_loop(const Node& n, Drafts& drafts) {
  if (n.opcode != COLLET_OP_WHILE || !is_scalar_loop(graph_, n)) return false;
  KernelPlan kernel = scalar_loop_kernel(graph_, n, [this](ValueId v) { return is_input(v); });
  add_kernel(kernel, drafts);
  return true;
}

Status Compiler::node(const Node& n, Drafts& drafts) {
  if (fusion_.alias[n.results[0]]) {
    range_[n.results[0]] = range(n.operands[0]);
    return {};
  }
  for (const Pipeline::NodeStep& step : pipeline_.node_steps) {
    if ((this->*step.take)(n, drafts)) return {};
  }
  switch (n.opcode) {
    case COLLET_OP_AFTER_ALL:
      range_[n.results[0]] = buffers_.add(0, time_);
      return {};
    case COLLET_OP_WHILE:
      return while_loop(n, drafts);
    case COLLET_OP_CONDITIONAL:
      return conditional(n, drafts);
    case COLLET_OP_BITCAST_CONVERT:
      if (!can_inline(graph_, n)) {  // a reshape that shares its operand's memory
        copy(range(n.operands[0]), n.results[0], drafts);
        return {};
      }
      break;
    default:
      break;
  }
  std::vector<KernelPlan> kernels;
  const InputTest inputs = [this](ValueId v) { return is_input(v); };
  const bool guard = fusion_.guards[static_cast<NodeId>(&n - graph_.nodes.data())] != kNone;
  if (can_inline(graph_, n) && !guard) {
    kernels.push_back(loop_kernel(graph_, {n.results[0]}, inputs));
    kernels.back().has_edges = fusion_.has_edges[static_cast<NodeId>(&n - graph_.nodes.data())];
  } else {
    if (!node_kernels(graph_, n, inputs, maker(), pipeline_.node_limits(target_), kernels)) {
      routine(n, drafts);
      return {};
    }
  }
  const auto attention = attentions_.extract(static_cast<NodeId>(&n - graph_.nodes.data()));
  if (!attention.empty()) kernels = {std::move(attention.mapped().kernel.plan)};
  const ValueId result = n.results[0];
  const auto writers = std::count_if(kernels.begin(), kernels.end(), [&](const KernelPlan& k) {
    return std::find(k.writes.begin(), k.writes.end(), result) != k.writes.end();
  });
  // If several kernels write parts of the result, the epilogue, which needs all of it, cannot be part of one of them.
  if (attention.empty() && writers >= 1) {
    if (std::optional<LibraryWay> way = library_way(n, kernels)) {
      KernelPlan* const later = writers > 1 ? std::exchange(epilogue_, nullptr) : nullptr;
      add_choice(kernels, result, *way, drafts);
      if (writers > 1) epilogue_ = later;
      return {};
    }
  }
  if (pipeline_.has_blocks_of_rows && n.opcode == COLLET_OP_CONCATENATE) {
    const auto dim = static_cast<size_t>(attributes<collet_dimension_attrs>(graph_, n).dimension);
    if (add_in_blocks(kernels, result, dim, drafts)) return {};
  }
  KernelPlan* const epilogue = writers > 1 ? std::exchange(epilogue_, nullptr) : nullptr;
  for (KernelPlan& k : kernels) {
    Product product;
    const std::string key = key_of(k.kernel);
    if (pipeline_.has_micro_kernels && find_scheduled_product(k, key, product)) {
      add_product(product, key, drafts);
      continue;
    }
    const bool last = &k == &kernels.back();
    if (epilogue_ && last && !is_better_apart(k, *epilogue_) &&
        append_epilogue(*epilogue_, result, graph_.type(result).dims, k))
      epilogue_ = nullptr;
    if (!attention.empty()) {
      add_attention(k, attention.mapped().schedule, drafts);
    } else {
      add_kernel(k, drafts);
    }
    why_no_product_ = nullptr;
  }
  if (writers > 1) epilogue_ = epilogue;
  return {};
}

RangeId Compiler::copy(RangeId from, ValueId to, Drafts& drafts) {
  ++time_;
  RangeId target = write(to);
  return copy_ranges(from, target, bytes_of(to), drafts);
}

RangeId Compiler::copy_ranges(RangeId from, RangeId to, uint64_t bytes, Drafts& drafts) {
  buffers_.use(from, time_);
  buffers_.use(to, time_);
  buffers_.allow(from, to, time_);
  Draft d;
  d.step.kind = StepKind::kCopy;
  d.step.bytes = bytes;
  d.ranges = {from, to};
  drafts.push_back(std::move(d));
  copies_.emplace_back(from, to);
  return to;
}

void Compiler::routine(const Node& n, Drafts& drafts) {
  if (!pipeline_.has_routines && !target_.sort_kernels) {
    if (n.opcode == COLLET_OP_SORT) return add_sort(n, drafts);
    if (n.opcode == COLLET_OP_FFT) return add_fft(n, drafts);
    return add_factorization(n, *library_factorization(graph_, n), drafts);
  }
  ++time_;
  Draft d;
  d.step.kind = StepKind::kRoutine;
  Comparator comparator;
  RoutineCall call = routine_call(graph_, n, comparator);
  if (target_.sort_kernels) comparator = comparator_of(graph_, n);
  if (!comparator.types.empty()) {
    call.compare = add_function({"compare" + std::to_string(sources_.size()), std::move(comparator), false});
  }
  for (size_t i = n.operands.size() - call.operands.size(); i < n.operands.size(); ++i) {
    d.ranges.push_back(read(n.operands[i]));
  }
  for (ValueId v : n.results) d.ranges.push_back(write(v));
  // A sort as a kernel keeps the places of its elements twice; other routines need not have operands.
  const uint64_t scratch = target_.sort_kernels ? 2 * sizeof(int32_t) * static_cast<uint64_t>(call.operands[0].elements)
                                                : make_routine(call)->scratch_bytes();
  d.ranges.push_back(buffers_.add(std::max<uint64_t>(scratch, 64), time_));
  for (ValueId v : n.operands) plan_->traffic_bytes += bytes_of(v);
  for (ValueId v : n.results) plan_->traffic_bytes += bytes_of(v);
  d.step.call = static_cast<uint32_t>(plan_->routines.size());
  plan_->routines.push_back(std::move(call));
  ++plan_->kernels;
  drafts.push_back(std::move(d));
}

void Compiler::coalesce_copies() {
  for (auto it = copies_.rbegin(); it != copies_.rend(); ++it) buffers_.coalesce(it->first, it->second);
}

uint32_t Compiler::count_places(const Drafts& drafts) {
  uint32_t n = 0;
  for (const Draft& d : drafts) {
    n += static_cast<uint32_t>(d.ranges.size());
    for (const Drafts& c : d.children) n += count_places(c);
  }
  return n;
}

void Compiler::resolve(Drafts& drafts, StepList& out) {
  for (Draft& d : drafts) {
    if (d.step.kind == StepKind::kCopy && (d.step.bytes == 0 || buffers_.same(d.ranges[0], d.ranges[1]))) continue;
    Step step = std::move(d.step);
    step.first_place = static_cast<uint32_t>(plan_->places.size());
    step.places = static_cast<uint32_t>(d.ranges.size());
    for (RangeId w : d.ranges) plan_->places.push_back(buffers_.place(w, *plan_));
    if (step.kind == StepKind::kCopy) {
      plan_->traffic_bytes += 2 * step.bytes;
      ++plan_->kernels;
    }
    step.children.resize(d.children.size());
    for (size_t i = 0; i < d.children.size(); ++i) resolve(d.children[i], step.children[i]);
    out.push_back(std::move(step));
  }
}

Status Compiler::store_constants() {
  plan_->constants.resize(constant_bytes_);
  for (ValueId v : constants_) {
    if (!graph_.value(v).constant) return {COLLET_INTERNAL, "a value is read that no step before has written"};
    const Place p = buffers_.place(range_[v], *plan_);
    std::memcpy(plan_->constants.data() + p.offset, graph_.value(v).constant, bytes_of(v));
    constant_arrays_.push_back({p.offset, graph_.value(v).type});
  }
  return {};
}

std::string Compiler::steps_of(const std::string& name) const {
  const auto found = histories_.find(name);
  if (found == histories_.end()) return {};
  std::string steps;
  for (const std::string_view step : found->second.steps) {
    if (step != "launch") steps += (steps.empty() ? "" : ", ") + std::string(step);
  }
  const char* const why = found->second.why_no_product;
  return (why ? std::string("//   no micro-kernel: ") + why + "\n" : "") +
         (steps.empty() ? "" : "//   steps: " + steps + "\n");
}

std::string Compiler::what_rules_did(Kernel kernel) const {
  ScheduleLog log;
  schedule_for(kernel, target_, options_.rules_off, &log);
  std::string out;
  for (const RuleOutcome& r : log)
    out += std::string("//   ") + r.rule + ": " + (r.why_not ? r.why_not : "applied") + "\n";
  return out;
}

void Compiler::keep_stages() {
  stages_.emplace_back("graph.txt", print_graph(graph_));
  stages_.emplace_back("fusion_groups.txt", groups_text_);
  std::string kernels = std::string("// pipeline: ") + pipeline_.machine + "\n";
  for (const FunctionSource& source : sources_) {
    if (const auto* kernel = std::get_if<Kernel>(&source.body)) {
      kernels += "// " + source.name + "\n" + steps_of(source.name);
      kernels += by_hand_.contains(source.name) ? "//   scheduled by hand\n" : what_rules_did(*kernel);
      kernels += "//   schedule: " + print_actions(*kernel) + "\n" + print_kernel(*kernel) + "\n";
    } else if (const auto* grid = std::get_if<GridKernel>(&source.body)) {
      kernels += "// " + source.name + ": " + print_schedule(grid->schedule) + "\n" + steps_of(source.name) +
                 print_kernel(grid->kernel) + "\n";
    } else if (const auto* product = std::get_if<BlockedProduct>(&source.body)) {
      kernels += "// " + source.name + "\n" + print_blocking(*product) + "\n\n";
    }
  }
  stages_.emplace_back("kernels.txt", kernels);
  if (options_.list_schedules)
    stages_.emplace_back("schedules.txt", "target " + schedule_target(target_) + "\n" + list_);
  stages_.emplace_back("launch_plan.txt", print_launch_plan(*plan_));
}

Status plan_program(const collet_program* program, const Target& target, const CompileOptions& options,
                    PlannedProgram& out) {
  return Compiler(program, target, options, out).run();
}

Status read_tuning_file(const std::string& path, std::string& out) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) return {COLLET_INVALID_ARGUMENT, "'" + path + "' cannot be read"};
  out = text.str();
  Schedules read;
  const Status status = read_tuning(out, "", read);
  return status.ok() ? status : Status{status.code(), "'" + path + "': " + status.message()};
}

const char* schedule_rule_name(uint32_t index) {
  return schedule_rule(index);
}

}  // namespace collet::codegen

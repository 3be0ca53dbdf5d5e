// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/compile/compiler.h"

#include <algorithm>
#include <cstring>
#include <tuple>

namespace collet::codegen {

namespace {

constexpr size_t kModuleFunctions = 12;
constexpr size_t kModuleMicros = 4;
constexpr size_t kMostInlined = 64;  ///< values between a product and what could run with it

}  // namespace

Status Compiler::run(std::unique_ptr<LaunchPlan>& out) {
  COLLET_CODEGEN_TRY(build_graph(program_, graph_));
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
  finish_entry(drafts);
  coalesce_copies();
  COLLET_CODEGEN_TRY(compile_functions());
  uint32_t places = count_places(drafts);
  const uint64_t table = (places * sizeof(char*) + 63) / 64 * 64;
  plan_->workspace_bytes = buffers_.assign_offsets(table);
  resolve(drafts, plan_->steps);
  COLLET_CODEGEN_TRY(store_constants());
  out = std::move(plan_);
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
  fuse_block(graph_, b, options_.fuse, fusion_);
  const std::vector<FusionGroup> groups = fusion_.groups;  // bodies of control flow make plans of their own
  const Readers readers = readers_in(b, groups);
  std::vector<bool> done(groups.size(), false);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (done[i]) continue;
    KernelPlan kernel;
    size_t taken = epilogue_of(b, groups, readers, i, kernel);
    bool there = false;
    if (taken < groups.size()) COLLET_CODEGEN_TRY(make_ready(groups, readers, kernel, i, done, drafts, there));
    if (!there) taken = groups.size();
    if (there) epilogue_ = &kernel;
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

size_t Compiler::only_reader(const Block& block, const Readers& readers, ValueId v) const {
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
      if (fusion_.alias[result]) return none;
      if (node.results.size() == 1 && !fusion_.in_memory[result]) {
        open.push_back(result);
        continue;
      }
      const auto holder = readers.group_of.find(n);
      if (holder == readers.group_of.end() || (found != none && found != holder->second)) return none;
      found = holder->second;
    }
    if (open.size() > kMostInlined) return none;
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
    if (!def || open.size() > kMostInlined) return false;
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
  KernelPlan kernel;
  if (!fused_kernel(graph_, u.values, [this](ValueId v) { return is_input(v); }, kernel)) {
    return {COLLET_INTERNAL, "cpu: a fusion cannot be compiled"};
  }
  Product product;
  if (u.nodes.size() == 1 && find_product(kernel, graph_, jit_.target(), product)) {
    add_product(product, drafts);
  } else {
    add_kernel(kernel, drafts);
  }
  return {};
}

Status Compiler::node(const Node& n, Drafts& drafts) {
  if (fusion_.alias[n.results[0]]) {
    range_[n.results[0]] = range(n.operands[0]);
    return {};
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
      if (!can_inline(graph_, n)) {  // other names for the same bytes
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
  } else {
    auto make = [this](uint32_t element, Dims dims) { return temporary(element, std::move(dims)); };
    if (!node_kernels(graph_, n, inputs, make, kernels)) return library(n, drafts);
  }
  for (KernelPlan& k : kernels) {
    Product product;
    if (find_product(k, graph_, jit_.target(), product)) {
      add_product(product, drafts);
      continue;
    }
    const ValueId result = n.results[0];
    const bool last = &k == &kernels.back();
    if (epilogue_ && last && append_epilogue(*epilogue_, result, graph_.type(result).dims, k)) epilogue_ = nullptr;
    add_kernel(k, drafts);
  }
  return {};
}

RangeId Compiler::copy(RangeId from, ValueId to, Drafts& drafts) {
  ++time_;
  RangeId target = write(to);
  return copy_webs(from, target, bytes_of(to), drafts);
}

RangeId Compiler::copy_webs(RangeId from, RangeId to, uint64_t bytes, Drafts& drafts) {
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

Status Compiler::library(const Node& n, Drafts& drafts) {
  ++time_;
  Draft d;
  d.step.kind = StepKind::kLibrary;
  std::unique_ptr<LibraryCall> call;
  COLLET_CODEGEN_TRY(make_library_call(graph_, n, comparators_, call));
  for (ValueId v : n.operands) d.ranges.push_back(read(v));
  for (ValueId v : n.results) d.ranges.push_back(write(v));
  RangeId scratch = buffers_.add(std::max<uint64_t>(call->scratch_bytes(), 64), time_);
  d.ranges.push_back(scratch);
  for (ValueId v : n.operands) plan_->traffic_bytes += bytes_of(v);
  for (ValueId v : n.results) plan_->traffic_bytes += bytes_of(v);
  d.step.library = call.get();
  plan_->library.push_back(std::move(call));
  ++plan_->kernels;
  drafts.push_back(std::move(d));
  return {};
}

void Compiler::coalesce_copies() {
  for (auto it = copies_.rbegin(); it != copies_.rend(); ++it) buffers_.coalesce(it->first, it->second);
}

Status Compiler::shared_micros(std::vector<const Micro*>& own) {
  using Key = std::tuple<MicroKernel, Kernel, uint32_t, ExprId>;
  std::map<Key, int> numbers;
  for (Micro& micro : micros_) {
    if (micro.epilogue) {
      const Epilogue& e = *micro.epilogue;
      const auto [it, fresh] = numbers.try_emplace({micro.kernel, e.kernel, e.product, e.value}, own.size());
      if (fresh) own.push_back(&micro);
      micro.number = it->second;
      continue;
    }
    FunctionSource source;
    source.name = name_of(micro.kernel);
    source.micro = &micro.kernel;
    void* f = nullptr;
    COLLET_CODEGEN_TRY(jit_.shared(source, f));
    *micro.target = reinterpret_cast<MicroFunction>(f);
  }
  return {};
}

Status Compiler::compile_functions() {
  std::vector<const Micro*> own;
  COLLET_CODEGEN_TRY(shared_micros(own));
  if (functions_.empty() && comparators_.empty() && own.empty()) return {};
  std::vector<std::vector<FunctionSource>> modules;
  for (size_t i = 0; i < functions_.size(); ++i) {
    if (i % kModuleFunctions == 0) modules.emplace_back();
    FunctionSource& f = modules.back().emplace_back();
    f.name = "kernel" + std::to_string(i);
    f.kernel = functions_[i];
  }
  for (size_t i = 0; i < own.size(); ++i) {
    if (i % kModuleMicros == 0) modules.emplace_back();
    FunctionSource& f = modules.back().emplace_back();
    f.name = "tile" + std::to_string(i);
    f.micro = &own[i]->kernel;
    f.epilogue = own[i]->epilogue;
  }
  if (!comparators_.empty()) modules.emplace_back();
  for (size_t i = 0; i < comparators_.size(); ++i) {
    FunctionSource& f = modules.back().emplace_back();
    f.name = "compare" + std::to_string(i);
    f.comparator = &comparators_[i].body;
    f.types = comparators_[i].types;
  }
  if (options_.objects) {
    COLLET_CODEGEN_TRY(jit_.load(*options_.objects, plan_->code));
  } else {
    COLLET_CODEGEN_TRY(jit_.compile(modules, options_.keep_artifacts, plan_->code));
  }
  for (size_t i = 0; i < functions_.size(); ++i) {
    void* f = plan_->code->find("kernel" + std::to_string(i));
    if (!f) return {COLLET_INTERNAL, "generated code has no function kernel" + std::to_string(i)};
    addresses_.push_back(reinterpret_cast<KernelFunction>(f));
  }
  for (auto [number, target_address] : pack_functions_) *target_address = addresses_[static_cast<size_t>(number)];
  for (const Micro& micro : micros_) {
    if (!micro.epilogue) continue;
    void* f = plan_->code->find("tile" + std::to_string(micro.number));
    if (!f) return {COLLET_INTERNAL, "generated code has no micro-kernel"};
    *micro.target = reinterpret_cast<MicroFunction>(f);
  }
  for (size_t i = 0; i < comparators_.size(); ++i) {
    void* f = plan_->code->find("compare" + std::to_string(i));
    if (!f) return {COLLET_INTERNAL, "generated code has no comparator"};
    *comparators_[i].target = reinterpret_cast<CompareFunction>(f);
  }
  return {};
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
    if (d.function >= 0) step.kernel = addresses_[static_cast<size_t>(d.function)];
    if (d.tail >= 0) step.tail = addresses_[static_cast<size_t>(d.tail)];
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
  plan_->constant_bytes = constant_bytes_;
  if (constant_bytes_ == 0) return {};
  plan_->constants = static_cast<char*>(std::aligned_alloc(64, constant_bytes_));
  if (!plan_->constants) return {COLLET_RESOURCE_EXHAUSTED, "cpu: no memory for the constants of the program"};
  for (ValueId v : constants_) {
    if (!graph_.value(v).constant) return {COLLET_INTERNAL, "cpu: a value is read that no step before has written"};
    Place p = buffers_.place(range_[v], *plan_);
    std::memcpy(plan_->constants + p.offset, graph_.value(v).constant, bytes_of(v));
  }
  return {};
}

LaunchPlan::~LaunchPlan() {
  std::free(constants);
}

Status compile_program(const collet_program* program, Jit& jit, const CompileOptions& options,
                       std::unique_ptr<LaunchPlan>& out) {
  return Compiler(program, jit, options).run(out);
}

}  // namespace collet::codegen

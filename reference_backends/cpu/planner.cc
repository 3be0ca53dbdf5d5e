// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/planner.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "reference_backends/cpu/compiler.h"
#include "sdk/codegen/emit_product.h"

namespace collet::cpu {

using codegen::Block;
using codegen::Kernel;
using codegen::KernelPlan;
using codegen::kNone;
using codegen::Node;
using codegen::Status;
using codegen::ValueId;

namespace {

constexpr size_t kModuleFunctions = 12;
constexpr size_t kModuleMicros = 4;
constexpr size_t kMostInlined = 64;  ///< values between a product and what could run with it

}  // namespace

Status Compiler::run(std::unique_ptr<Plan>& out) {
  COLLET_CODEGEN_TRY(build_graph(program_, graph_));
  web_.assign(graph_.values.size(), kNone);
  const Block& entry = graph_.blocks[0];
  plan_->arguments = static_cast<uint32_t>(entry.arguments.size());
  plan_->results = static_cast<uint32_t>(entry.results.size());
  for (uint32_t i = 0; i < plan_->arguments; ++i) {
    const ValueId v = entry.arguments[i];
    web_[v] = storages_.add(bytes_of(v), -1, Storages::Kind::kArgument, i);
    plan_->argument_bytes.push_back(bytes_of(v));
  }
  Drafts drafts;
  COLLET_CODEGEN_TRY(block(0, drafts));
  finish_entry(drafts);
  unite_copies();
  COLLET_CODEGEN_TRY(compile_functions());
  uint32_t places = count_places(drafts);
  const uint64_t table = (places * sizeof(char*) + 63) / 64 * 64;
  plan_->workspace_bytes = storages_.place_all(table);
  resolve(drafts, plan_->steps);
  COLLET_CODEGEN_TRY(store_constants());
  out = std::move(plan_);
  return {};
}

WebId Compiler::web(ValueId v) {
  if (web_[v] == kNone) {
    const auto& value = graph_.value(v);
    web_[v] = storages_.add(bytes_of(v), -1, Storages::Kind::kConstant, 0, constant_bytes_);
    constants_.push_back(v);
    constant_bytes_ += (static_cast<uint64_t>(value.type.bytes()) + 63) / 64 * 64;
  }
  return web_[v];
}

WebId Compiler::read(ValueId v) {
  WebId w = web(v);
  storages_.use(w, time_);
  return w;
}

WebId Compiler::write(ValueId v) {
  if (web_[v] == kNone) web_[v] = storages_.add(bytes_of(v), time_);
  storages_.use(web_[v], time_);
  return web_[v];
}

Status Compiler::block(BlockId id, Drafts& drafts) {
  const Block& b = graph_.blocks[id];
  plan_block(graph_, b, options_.fuse, block_plan_);
  const std::vector<Unit> units = block_plan_.units;  // bodies of control flow make plans of their own
  const Readers readers = readers_in(b, units);
  std::vector<bool> done(units.size(), false);
  for (size_t i = 0; i < units.size(); ++i) {
    if (done[i]) continue;
    KernelPlan kernel;
    size_t taken = epilogue_of(b, units, readers, i, kernel);
    bool there = false;
    if (taken < units.size()) COLLET_CODEGEN_TRY(make_ready(units, readers, kernel, i, done, drafts, there));
    if (!there) taken = units.size();
    if (there) epilogue_ = &kernel;
    COLLET_CODEGEN_TRY(unit(units[i], drafts));
    if (taken < units.size()) done[taken] = epilogue_ == nullptr;
    epilogue_ = nullptr;
  }
  return {};
}

Compiler::Readers Compiler::readers_in(const Block& block, const std::vector<Unit>& units) const {
  Readers readers;
  for (codegen::NodeId n : block.nodes) {
    if (!block_plan_.alive[n]) continue;
    for (ValueId v : graph_.nodes[n].operands) {
      auto& users = readers.users[v];
      if (users.empty() || users.back() != n) users.push_back(n);
    }
  }
  for (size_t u = 0; u < units.size(); ++u) {
    for (codegen::NodeId n : units[u].nodes) readers.unit_of.try_emplace(n, u);
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
    for (codegen::NodeId n : users->second) {
      const Node& node = graph_.nodes[n];
      const ValueId result = node.results[0];
      if (block_plan_.alias[result]) return none;
      if (node.results.size() == 1 && !block_plan_.in_memory[result]) {
        open.push_back(result);
        continue;
      }
      const auto holder = readers.unit_of.find(n);
      if (holder == readers.unit_of.end() || (found != none && found != holder->second)) return none;
      found = holder->second;
    }
    if (open.size() > kMostInlined) return none;
  }
  return found;
}

size_t Compiler::epilogue_of(const Block& block, const std::vector<Unit>& units, const Readers& readers, size_t at,
                             KernelPlan& kernel) const {
  const Node& n = graph_.nodes[units[at].nodes[0]];
  const size_t none = units.size();
  if (units[at].fused || (n.opcode != COLLET_OP_DOT && n.opcode != COLLET_OP_CONVOLUTION)) return none;
  const ValueId product = n.results[0];
  const size_t reader = only_reader(block, readers, product);
  if (reader >= none || reader <= at || !units[reader].fused) return none;
  const codegen::FusedValues& values = units[reader].values;
  if (std::find(values.inner.begin(), values.inner.end(), true) != values.inner.end()) return none;
  if (!fused_kernel(graph_, values, [this](ValueId v) { return leaf(v); }, kernel)) return none;
  const Kernel& k = kernel.kernel;
  if (kernel.writes.size() != 1 || k.stores.size() != 1 || k.stores[0].mask != codegen::kNoTape) return none;
  if (!k.updates.empty() || !k.reductions.empty() || !kernel.copies.empty()) return none;
  const std::pair<ValueId, ValueId> in_place{product, kernel.writes[0]};
  if (std::find(kernel.in_place.begin(), kernel.in_place.end(), in_place) == kernel.in_place.end()) return none;
  return reader;
}

bool Compiler::is_ready(const Unit& u) const {
  std::vector<ValueId> open;
  for (codegen::NodeId n : u.nodes) {
    const auto& operands = graph_.nodes[n].operands;
    open.insert(open.end(), operands.begin(), operands.end());
  }
  for (size_t at = 0; at < open.size(); ++at) {
    const ValueId v = open[at];
    if (graph_.value(v).constant || web_[v] != kNone) continue;
    const Node* def = graph_.def(v);
    if (!def || open.size() > kMostInlined) return false;
    if (std::find(u.nodes.begin(), u.nodes.end(), graph_.values[v].def) != u.nodes.end()) continue;
    if (block_plan_.in_memory[v]) return false;
    open.insert(open.end(), def->operands.begin(), def->operands.end());
  }
  return true;
}

Status Compiler::make_ready(const std::vector<Unit>& units, const Readers& readers, const KernelPlan& kernel, size_t at,
                            std::vector<bool>& done, Drafts& drafts, bool& there) {
  const ValueId product = graph_.nodes[units[at].nodes[0]].results[0];
  std::vector<size_t> first;
  there = false;
  for (ValueId v : kernel.buffers) {
    const bool known = web_[v] != kNone || graph_.value(v).constant || v == product || v == kernel.writes[0];
    if (known) continue;
    const auto holder = readers.unit_of.find(graph_.values[v].def);
    if (holder == readers.unit_of.end() || holder->second <= at || !units[holder->second].fused) return {};
    if (done[holder->second] || !is_ready(units[holder->second])) return {};
    if (std::find(first.begin(), first.end(), holder->second) == first.end()) first.push_back(holder->second);
  }
  for (size_t u : first) {
    COLLET_CODEGEN_TRY(unit(units[u], drafts));
    done[u] = true;
  }
  there = true;
  return {};
}

Status Compiler::unit(const Unit& u, Drafts& drafts) {
  const Node& n = graph_.nodes[u.nodes[0]];
  if (!u.fused) return node(n, drafts);
  KernelPlan kernel;
  if (!fused_kernel(graph_, u.values, [this](ValueId v) { return leaf(v); }, kernel)) {
    return {COLLET_INTERNAL, "cpu: a fusion cannot be compiled"};
  }
  codegen::Product product;
  if (u.nodes.size() == 1 && find_product(kernel, graph_, jit_.target(), product)) {
    add_product(product, drafts);
  } else {
    add_kernel(kernel, drafts);
  }
  return {};
}

Status Compiler::node(const Node& n, Drafts& drafts) {
  if (block_plan_.alias[n.results[0]]) {
    web_[n.results[0]] = web(n.operands[0]);
    return {};
  }
  switch (n.opcode) {
    case COLLET_OP_AFTER_ALL:
      web_[n.results[0]] = storages_.add(0, time_);
      return {};
    case COLLET_OP_WHILE:
      return while_loop(n, drafts);
    case COLLET_OP_CONDITIONAL:
      return conditional(n, drafts);
    case COLLET_OP_BITCAST_CONVERT:
      if (!can_inline(graph_, n)) {  // other names for the same bytes
        copy(web(n.operands[0]), n.results[0], drafts);
        return {};
      }
      break;
    default:
      break;
  }
  std::vector<KernelPlan> kernels;
  auto is_leaf = [this](ValueId v) { return leaf(v); };
  const bool guard = block_plan_.guards[static_cast<codegen::NodeId>(&n - graph_.nodes.data())] != kNone;
  if (can_inline(graph_, n) && !guard) {
    kernels.push_back(loop_kernel(graph_, {n.results[0]}, is_leaf));
  } else {
    auto make = [this](uint32_t element, codegen::Dims dims) { return temporary(element, std::move(dims)); };
    if (!node_kernels(graph_, n, is_leaf, make, kernels)) return library(n, drafts);
  }
  for (KernelPlan& k : kernels) {
    codegen::Product product;
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

WebId Compiler::copy(WebId from, ValueId to, Drafts& drafts) {
  ++time_;
  WebId target = write(to);
  return copy_webs(from, target, bytes_of(to), drafts);
}

WebId Compiler::copy_webs(WebId from, WebId to, uint64_t bytes, Drafts& drafts) {
  storages_.use(from, time_);
  storages_.use(to, time_);
  storages_.allow(from, to, time_);
  Draft d;
  d.step.kind = StepKind::kCopy;
  d.step.bytes = bytes;
  d.webs = {from, to};
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
  for (ValueId v : n.operands) d.webs.push_back(read(v));
  for (ValueId v : n.results) d.webs.push_back(write(v));
  WebId scratch = storages_.add(std::max<uint64_t>(call->scratch_bytes(), 64), time_);
  d.webs.push_back(scratch);
  for (ValueId v : n.operands) plan_->traffic_bytes += bytes_of(v);
  for (ValueId v : n.results) plan_->traffic_bytes += bytes_of(v);
  d.step.library = call.get();
  plan_->library.push_back(std::move(call));
  ++plan_->kernels;
  drafts.push_back(std::move(d));
  return {};
}

void Compiler::unite_copies() {
  for (auto it = copies_.rbegin(); it != copies_.rend(); ++it) storages_.unite(it->first, it->second);
}

Status Compiler::shared_micros(std::vector<const Micro*>& own) {
  using Key = std::tuple<codegen::MicroKernel, Kernel, uint32_t, codegen::TapeId>;
  std::map<Key, int> numbers;
  for (Micro& micro : micros_) {
    if (micro.epilogue) {
      const codegen::Epilogue& e = *micro.epilogue;
      const auto [it, fresh] = numbers.try_emplace({micro.kernel, e.kernel, e.product, e.value}, own.size());
      if (fresh) own.push_back(&micro);
      micro.number = it->second;
      continue;
    }
    const std::string name = codegen::name_of(micro.kernel);
    void* f = nullptr;
    auto fill = [&](llvm::Module& m) { emit_micro_kernel(micro.kernel, nullptr, m, jit_.target(), name); };
    COLLET_CODEGEN_TRY(jit_.shared(name, fill, f));
    *micro.target = reinterpret_cast<codegen::MicroFunction>(f);
  }
  return {};
}

Status Compiler::compile_functions() {
  std::vector<const Micro*> own;
  COLLET_CODEGEN_TRY(shared_micros(own));
  if (functions_.empty() && comparators_.empty() && own.empty()) return {};
  std::vector<std::function<void(llvm::Module&)>> fill;
  const codegen::Target& target = jit_.target();
  for (size_t first = 0; first < functions_.size(); first += kModuleFunctions) {
    fill.push_back([this, first, &target](llvm::Module& m) {
      for (size_t i = first; i < std::min(first + kModuleFunctions, functions_.size()); ++i) {
        emit_kernel(*functions_[i], m, target, "kernel" + std::to_string(i));
      }
    });
  }
  for (size_t first = 0; first < own.size(); first += kModuleMicros) {
    fill.push_back([&own, first, &target](llvm::Module& m) {
      for (size_t i = first; i < std::min(first + kModuleMicros, own.size()); ++i) {
        const Micro& micro = *own[i];
        const std::string name = "tile" + std::to_string(i);
        if (micro.kernel.rows == 0) {
          emit_epilogue(micro.kernel, *micro.epilogue, m, target, name);
        } else {
          emit_micro_kernel(micro.kernel, micro.epilogue, m, target, name);
        }
      }
    });
  }
  if (!comparators_.empty())
    fill.push_back([this, &target](llvm::Module& m) {
      for (size_t i = 0; i < comparators_.size(); ++i) {
        emit_comparator(comparators_[i].body, comparators_[i].types, m, target, "compare" + std::to_string(i));
      }
    });
  if (options_.objects) {
    COLLET_CODEGEN_TRY(jit_.load(*options_.objects, plan_->code));
  } else {
    COLLET_CODEGEN_TRY(jit_.compile(fill, options_.keep_artifacts, plan_->code));
  }
  for (size_t i = 0; i < functions_.size(); ++i) {
    void* f = plan_->code->find("kernel" + std::to_string(i));
    if (!f) return {COLLET_INTERNAL, "generated code has no function kernel" + std::to_string(i)};
    addresses_.push_back(reinterpret_cast<codegen::KernelFunction>(f));
  }
  for (auto [number, target_address] : pack_functions_) *target_address = addresses_[static_cast<size_t>(number)];
  for (const Micro& micro : micros_) {
    if (!micro.epilogue) continue;
    void* f = plan_->code->find("tile" + std::to_string(micro.number));
    if (!f) return {COLLET_INTERNAL, "generated code has no micro-kernel"};
    *micro.target = reinterpret_cast<codegen::MicroFunction>(f);
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
    n += static_cast<uint32_t>(d.webs.size());
    for (const Drafts& c : d.children) n += count_places(c);
  }
  return n;
}

void Compiler::resolve(Drafts& drafts, Sequence& out) {
  for (Draft& d : drafts) {
    if (d.step.kind == StepKind::kCopy && (d.step.bytes == 0 || storages_.same(d.webs[0], d.webs[1]))) continue;
    Step step = std::move(d.step);
    step.first_place = static_cast<uint32_t>(plan_->places.size());
    step.places = static_cast<uint32_t>(d.webs.size());
    for (WebId w : d.webs) plan_->places.push_back(storages_.place(w, *plan_));
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
    Place p = storages_.place(web_[v], *plan_);
    std::memcpy(plan_->constants + p.offset, graph_.value(v).constant, bytes_of(v));
  }
  return {};
}

Plan::~Plan() {
  std::free(constants);
}

Status make_plan(const collet_program* program, codegen::Jit& jit, const PlanOptions& options,
                 std::unique_ptr<Plan>& out) {
  return Compiler(program, jit, options).run(out);
}

}  // namespace collet::cpu

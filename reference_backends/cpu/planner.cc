// SPDX-License-Identifier: Apache-2.0
#include "reference_backends/cpu/planner.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "reference_backends/cpu/fusion.h"
#include "reference_backends/cpu/library.h"
#include "reference_backends/cpu/product_call.h"
#include "reference_backends/cpu/storage.h"
#include "sdk/codegen/contraction.h"
#include "sdk/codegen/emit_product.h"
#include "sdk/codegen/kernels.h"

namespace collet::cpu {
namespace {

using codegen::Block;
using codegen::BlockId;
using codegen::Graph;
using codegen::Kernel;
using codegen::KernelPlan;
using codegen::kNone;
using codegen::Node;
using codegen::NodeId;
using codegen::Status;
using codegen::ValueId;

constexpr size_t kModuleFunctions = 12;

/// A step before memory is known.
struct Draft {
  Step step;
  std::vector<WebId> webs;  ///< becomes places
  int function = -1;        ///< of the kernel functions
  std::vector<std::vector<Draft>> children;
};
using Drafts = std::vector<Draft>;

double estimate_ns(const Kernel& kernel) {
  double points = 1;
  for (const auto& l : kernel.loops) points *= static_cast<double>(l.size);
  double ops = 1;
  for (const auto& i : kernel.tape)
    ops += i.op == codegen::TapeOp::kOp ? 1.5 : i.op == codegen::TapeOp::kLoad ? 1 : 0.2;
  return points * ops / (kernel.lanes * 1.5);
}

class Compiler {
 public:
  Compiler(const collet_program* program, codegen::Jit& jit, const PlanOptions& options)
      : program_(program), jit_(jit), options_(options), plan_(std::make_unique<Plan>()) {}

  Status run(std::unique_ptr<Plan>& out) {
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
    store_constants();
    out = std::move(plan_);
    return {};
  }

 private:
  uint64_t bytes_of(ValueId v) const { return static_cast<uint64_t>(graph_.type(v).bytes()); }

  /// The web of a value in memory; constants get theirs when first used.
  WebId web(ValueId v) {
    if (web_[v] == kNone) {
      const auto& value = graph_.value(v);
      web_[v] = storages_.add(bytes_of(v), -1, Storages::Kind::kConstant, 0, constant_bytes_);
      constants_.push_back(v);
      constant_bytes_ += (static_cast<uint64_t>(value.type.bytes()) + 63) / 64 * 64;
    }
    return web_[v];
  }

  WebId read(ValueId v) {
    WebId w = web(v);
    storages_.use(w, time_);
    return w;
  }

  WebId write(ValueId v) {
    if (web_[v] == kNone) web_[v] = storages_.add(bytes_of(v), time_);
    storages_.use(web_[v], time_);
    return web_[v];
  }

  bool leaf(ValueId v) const { return block_plan_.in_memory[v] || graph_.value(v).constant != nullptr; }

  Status block(BlockId id, Drafts& drafts) {
    const Block& b = graph_.blocks[id];
    plan_block(graph_, b, options_.fuse, block_plan_);
    const std::vector<Unit> units = block_plan_.units;  // bodies of control flow make plans of their own
    for (const Unit& u : units) COLLET_CODEGEN_TRY(unit(u, drafts));
    return {};
  }

  Status unit(const Unit& u, Drafts& drafts) {
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

  Status node(const Node& n, Drafts& drafts) {
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
    if (can_inline(graph_, n)) {
      kernels.push_back(loop_kernel(graph_, {n.results[0]}, is_leaf));
    } else if (!node_kernels(graph_, n, is_leaf, kernels)) {
      return library(n, drafts);
    }
    for (KernelPlan& k : kernels) {
      codegen::Product product;
      if (find_product(k, graph_, jit_.target(), product)) {
        add_product(product, drafts);
      } else {
        add_kernel(k, drafts);
      }
    }
    return {};
  }

  /// A value of the planner's own, in memory.
  ValueId temporary(uint32_t element, codegen::Dims dims) {
    const ValueId v = graph_.add_value(codegen::make_type(element, std::move(dims)));
    web_.resize(graph_.values.size(), kNone);
    block_plan_.in_memory.resize(graph_.values.size(), true);
    return v;
  }

  /// A packing that the call itself runs, part by part: loop 0 must stay what it is.
  void add_packing(codegen::ProductOperand& o, codegen::KernelFunction* target, Draft& d) {
    collapse_loops(o.pack.kernel, 1);
    choose_lanes(o.pack.kernel, jit_.target().vector_bits, 1);
    pack_functions_.emplace_back(function_of(o.pack.kernel), target);
    for (ValueId v : o.pack.buffers) {
      if (v != kNone) d.webs.push_back(read(v));
    }
  }

  void add_product(codegen::Product& p, Drafts& drafts) {
    const ValueId result = p.converts ? temporary(p.type, graph_.type(p.result).dims) : p.result;
    auto call = std::make_unique<ProductCall>(p, options_.threads);
    ValueId b = p.b.value;
    if (p.b.packed && !call->packs_b()) {
      const int64_t panels = (p.columns + p.panel() - 1) / p.panel();
      b = temporary(p.type, {p.b.batches * panels * p.depth * p.panel()});
      p.b.pack.buffers[p.b.pack_output] = b;
      p.b.pack.writes = {b};
      add_kernel(p.b.pack, drafts);
    }
    ++time_;
    Draft d;
    d.step.kind = StepKind::kLibrary;
    if (p.a.packed) {
      add_packing(p.a, call->pack_a(), d);
    } else {
      d.webs.push_back(read(p.a.value));
    }
    if (call->packs_b()) {
      add_packing(p.b, call->pack_b(), d);
    } else {
      d.webs.push_back(read(b));
    }
    d.webs.push_back(write(result));
    WebId scratch = storages_.add(std::max<uint64_t>(call->scratch_bytes(), 64), time_);
    d.webs.push_back(scratch);
    for (size_t i = 0; i + 1 < d.webs.size(); ++i) plan_->traffic_bytes += storages_.bytes(d.webs[i]);
    for (bool last_row : {false, true}) {
      for (bool last_column : {false, true}) {
        if ((last_row && !call->has_last_rows()) || (last_column && !call->has_last_columns())) continue;
        codegen::MicroKernel m =
            p.micro(last_row ? call->last_rows() : p.tile_rows, last_column ? call->last_columns() : p.panel());
        micros_.emplace_back(m, call->micro(last_row, last_column));
      }
    }
    d.step.library = call.get();
    plan_->library.push_back(std::move(call));
    ++plan_->kernels;
    drafts.push_back(std::move(d));
    if (p.converts) {
      KernelPlan k = convert_kernel(graph_, result, p.result);
      add_kernel(k, drafts);
    }
  }

  void add_kernel(KernelPlan& k, Drafts& drafts) {
    for (auto [from, to] : k.copies) copy(web(from), to, drafts);
    Kernel& kernel = k.kernel;
    bool empty = false;
    bool reduces = !kernel.reductions.empty();
    for (size_t l = 0; l < kernel.loops.size(); ++l)
      empty = empty || (kernel.loops[l].size == 0 && (l < kernel.outer || !reduces));
    if (empty) {
      for (ValueId v : k.writes) write(v);
      return;
    }
    collapse_loops(kernel);
    choose_lanes(kernel, jit_.target().vector_bits);
    ++time_;
    Draft d;
    d.step.kind = StepKind::kKernel;
    d.function = function_of(kernel);
    for (ValueId v : k.buffers) {
      bool written = std::find(k.writes.begin(), k.writes.end(), v) != k.writes.end();
      d.webs.push_back(written ? write(v) : read(v));
      plan_->traffic_bytes += bytes_of(v);
    }
    for (auto [from, to] : k.in_place) storages_.allow(web(from), web(to), time_);
    d.step.range = kernel.outer > 0 ? kernel.loops[0].size : 1;
    d.step.grain = kernel.outer > 0 && kernel.lane_loop == 0 ? kernel.lanes : 1;
    d.step.cost_ns = estimate_ns(kernel);
    d.step.parallel = !kernel.sequential && kernel.outer > 0 && d.step.range > d.step.grain &&
                      d.step.cost_ns > Threads::kWorthwhileNs;
    ++plan_->kernels;
    drafts.push_back(std::move(d));
  }

  int function_of(const Kernel& kernel) {
    auto [it, fresh] = function_numbers_.try_emplace(kernel, static_cast<int>(functions_.size()));
    if (fresh) functions_.push_back(&it->first);
    return it->second;
  }

  WebId copy(WebId from, ValueId to, Drafts& drafts) {
    ++time_;
    WebId target = write(to);
    return copy_webs(from, target, bytes_of(to), drafts);
  }

  WebId copy_webs(WebId from, WebId to, uint64_t bytes, Drafts& drafts) {
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

  Status library(const Node& n, Drafts& drafts) {
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

  /// Compiles a block whose arguments have webs already; leaves its results' webs in `results`.
  Status child(BlockId id, Drafts& drafts, std::vector<WebId>& results) {
    COLLET_CODEGEN_TRY(block(id, drafts));
    for (ValueId v : graph_.blocks[id].results) results.push_back(web(v));
    return {};
  }

  Status while_loop(const Node& n, Drafts& drafts) {
    const size_t count = n.operands.size();
    std::vector<WebId> state;
    ++time_;
    for (size_t i = 0; i < count; ++i) {
      WebId s = storages_.add(bytes_of(n.operands[i]), time_);
      state.push_back(s);
      copy_webs(web(n.operands[i]), s, bytes_of(n.operands[i]), drafts);
    }
    Draft d;
    d.step.kind = StepKind::kWhile;
    d.children.resize(2);
    const Block& condition = graph_.blocks[n.blocks[0]];
    const Block& body = graph_.blocks[n.blocks[1]];
    for (size_t i = 0; i < count; ++i) web_[condition.arguments[i]] = web_[body.arguments[i]] = state[i];
    std::vector<WebId> go_on;
    COLLET_CODEGEN_TRY(child(n.blocks[0], d.children[0], go_on));
    ++time_;
    storages_.use(go_on[0], time_);
    std::vector<WebId> next;
    COLLET_CODEGEN_TRY(child(n.blocks[1], d.children[1], next));
    save_permuted(state, next, n.operands, d.children[1]);
    std::vector<WebId> after = state;
    ++time_;
    for (size_t i = 0; i < count; ++i) {
      if (next[i] == state[i]) continue;
      ++time_;
      after[i] = storages_.add_in(state[i], time_);
      copy_webs(next[i], after[i], bytes_of(n.operands[i]), d.children[1]);
    }
    ++time_;
    for (size_t i = 0; i < count; ++i) {
      storages_.use(after[i], time_);
      web_[n.results[i]] = after[i];
      // What is not written keeps its place from the first copy to the end.
      if (after[i] == state[i]) storages_.use(state[i], time_);
    }
    storages_.use(go_on[0], time_);
    d.webs = {go_on[0]};
    drafts.push_back(std::move(d));
    return {};
  }

  /// Results that are another variable's old content are saved before any variable is written.
  void save_permuted(const std::vector<WebId>& state, std::vector<WebId>& next, const std::vector<ValueId>& values,
                     Drafts& drafts) {
    ++time_;
    for (size_t i = 0; i < next.size(); ++i) {
      bool other = next[i] != state[i] && std::find(state.begin(), state.end(), next[i]) != state.end();
      if (!other) continue;
      WebId saved = storages_.add(bytes_of(values[i]), time_);
      Draft d;
      d.step.kind = StepKind::kCopy;
      d.step.bytes = bytes_of(values[i]);
      d.webs = {next[i], saved};
      storages_.use(next[i], time_);
      drafts.push_back(std::move(d));
      next[i] = saved;
    }
  }

  Status conditional(const Node& n, Drafts& drafts) {
    Draft d;
    d.step.kind = StepKind::kConditional;
    const auto& selector = graph_.type(n.operands[0]);
    d.step.index_bytes = selector.element == COLLET_TYPE_PRED ? 0 : 4;
    ++time_;
    WebId choice = read(n.operands[0]);
    std::vector<WebId> home;
    size_t operand = 1;
    for (size_t k = 0; k < n.blocks.size(); ++k) {
      const Block& b = graph_.blocks[n.blocks[k]];
      for (ValueId v : b.arguments) web_[v] = web(n.operands[operand++]);
      Drafts branch;
      std::vector<WebId> results;
      COLLET_CODEGEN_TRY(child(n.blocks[k], branch, results));
      std::vector<WebId> written;
      for (size_t i = 0; i < results.size(); ++i) {
        ++time_;
        WebId to = k == 0 ? storages_.add(bytes_of(n.results[i]), time_) : storages_.add_in(home[i], time_);
        if (k == 0) home.push_back(to);
        written.push_back(to);
        copy_webs(results[i], to, bytes_of(n.results[i]), branch);
      }
      for (WebId w : written) storages_.use(w, time_);
      d.children.push_back(std::move(branch));
    }
    ++time_;
    for (size_t i = 0; i < n.results.size(); ++i) web_[n.results[i]] = storages_.add_in(home[i], time_);
    d.webs = {choice};
    drafts.push_back(std::move(d));
    return {};
  }

  /// Every result gets a copy of its value, which vanishes where the value can be computed in place.
  void finish_entry(Drafts& drafts) {
    const Block& entry = graph_.blocks[0];
    std::vector<WebId> results;
    std::vector<WebId> sources;
    for (ValueId v : entry.results) sources.push_back(web(v));
    // An argument that is returned in another argument's memory is saved first.
    ++time_;
    for (size_t i = 0; i < sources.size(); ++i) {
      const auto& value = graph_.value(entry.results[i]);
      bool is_argument = value.def == kNone && !value.constant;
      if (!is_argument || program_->aliases.count == 0) continue;
      WebId saved = storages_.add(bytes_of(entry.results[i]), time_);
      Draft d;
      d.step.kind = StepKind::kCopy;
      d.step.bytes = bytes_of(entry.results[i]);
      d.webs = {sources[i], saved};
      storages_.use(sources[i], time_);
      drafts.push_back(std::move(d));
      sources[i] = saved;
    }
    for (uint32_t i = 0; i < entry.results.size(); ++i) {
      plan_->result_bytes.push_back(bytes_of(entry.results[i]));
      ++time_;
      results.push_back(storages_.add(bytes_of(entry.results[i]), time_, Storages::Kind::kResult, i));
      copy_webs(sources[i], results[i], bytes_of(entry.results[i]), drafts);
    }
    for (uint32_t i = 0; i < program_->aliases.count; ++i) {
      const collet_alias* a = collet_alias_at(program_, i);
      storages_.may_alias(results[a->result], web_[entry.arguments[a->argument]]);
    }
    ++time_;
    for (WebId r : results) storages_.use(r, time_);
  }

  void unite_copies() {
    for (auto it = copies_.rbegin(); it != copies_.rend(); ++it) storages_.unite(it->first, it->second);
  }

  Status compile_functions() {
    for (auto& [micro, address] : micros_) {
      const std::string name = codegen::name_of(micro);
      void* f = nullptr;
      COLLET_CODEGEN_TRY(jit_.shared(
          name, [&, &m = micro](llvm::Module& module) { emit_micro_kernel(m, module, jit_.target(), name); }, f));
      *address = reinterpret_cast<codegen::MicroFunction>(f);
    }
    if (functions_.empty() && comparators_.empty()) return {};
    std::vector<std::function<void(llvm::Module&)>> fill;
    const codegen::Target& target = jit_.target();
    for (size_t first = 0; first < functions_.size(); first += kModuleFunctions) {
      fill.push_back([this, first, &target](llvm::Module& m) {
        for (size_t i = first; i < std::min(first + kModuleFunctions, functions_.size()); ++i) {
          emit_kernel(*functions_[i], m, target, "kernel" + std::to_string(i));
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
    for (size_t i = 0; i < comparators_.size(); ++i) {
      void* f = plan_->code->find("compare" + std::to_string(i));
      if (!f) return {COLLET_INTERNAL, "generated code has no comparator"};
      *comparators_[i].target = reinterpret_cast<CompareFunction>(f);
    }
    return {};
  }

  static uint32_t count_places(const Drafts& drafts) {
    uint32_t n = 0;
    for (const Draft& d : drafts) {
      n += static_cast<uint32_t>(d.webs.size());
      for (const Drafts& c : d.children) n += count_places(c);
    }
    return n;
  }

  void resolve(Drafts& drafts, Sequence& out) {
    for (Draft& d : drafts) {
      if (d.step.kind == StepKind::kCopy && (d.step.bytes == 0 || storages_.same(d.webs[0], d.webs[1]))) continue;
      Step step = std::move(d.step);
      step.first_place = static_cast<uint32_t>(plan_->places.size());
      step.places = static_cast<uint32_t>(d.webs.size());
      for (WebId w : d.webs) plan_->places.push_back(storages_.place(w, *plan_));
      if (d.function >= 0) step.kernel = addresses_[static_cast<size_t>(d.function)];
      if (step.kind == StepKind::kCopy) {
        plan_->traffic_bytes += 2 * step.bytes;
        ++plan_->kernels;
      }
      step.children.resize(d.children.size());
      for (size_t i = 0; i < d.children.size(); ++i) resolve(d.children[i], step.children[i]);
      out.push_back(std::move(step));
    }
  }

  void store_constants() {
    plan_->constant_bytes = constant_bytes_;
    if (constant_bytes_ == 0) return;
    plan_->constants = static_cast<char*>(std::aligned_alloc(64, constant_bytes_));
    for (ValueId v : constants_) {
      Place p = storages_.place(web_[v], *plan_);
      std::memcpy(plan_->constants + p.offset, graph_.value(v).constant, bytes_of(v));
    }
  }

  const collet_program* program_;
  codegen::Jit& jit_;
  PlanOptions options_;
  Graph graph_;
  std::unique_ptr<Plan> plan_;
  BlockPlan block_plan_;
  Storages storages_;
  std::vector<WebId> web_;
  int time_ = 0;
  std::vector<std::pair<WebId, WebId>> copies_;
  std::map<Kernel, int> function_numbers_;
  std::vector<const Kernel*> functions_;
  std::vector<codegen::KernelFunction> addresses_;
  std::vector<Comparator> comparators_;
  std::vector<std::pair<codegen::MicroKernel, codegen::MicroFunction*>> micros_;
  std::vector<std::pair<int, codegen::KernelFunction*>> pack_functions_;
  std::vector<ValueId> constants_;
  uint64_t constant_bytes_ = 0;
};

}  // namespace

Plan::~Plan() {
  std::free(constants);
}

Status make_plan(const collet_program* program, codegen::Jit& jit, const PlanOptions& options,
                 std::unique_ptr<Plan>& out) {
  return Compiler(program, jit, options).run(out);
}

}  // namespace collet::cpu

// SPDX-License-Identifier: Apache-2.0
#include "sdk/runtime/plan/compiler.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "hlo/ops/transfers.h"
#include "hlo/passes/own_results.h"
#include "hlo/passes/pipeline.h"
#include "hlo/passes/plan_buffers.h"
#include "hlo/program/print.h"
#include "hlo/program/write.h"
#include "hlo/verify/verify.h"
#include "sdk/runtime/dump.h"
#include "sdk/runtime/plan/explain.h"
#include "sdk/runtime/plan/partition.h"
#include "sdk/runtime/plan/program_compiler.h"
#include "sdk/runtime/plan/verdicts.h"
#include "sdk/runtime/run/residency.h"
#include "sdk/runtime/trace.h"

namespace collet::runtime {
namespace {

// Largest number of splits of a cluster at the same op; after these the op runs on the fallback.
constexpr int kMostCuts = 2;
constexpr int kMostRejections = 64;  // largest number of rejected clusters; after these the compilation fails
constexpr uint32_t kMostParticipants = 4096;

// Returns the names of COLLET_FEATURE_*.
std::string features_text(uint32_t features) {
  constexpr std::pair<uint32_t, std::string_view> kNames[] = {
      {COLLET_FEATURE_CHANNELS, "COLLET_FEATURE_CHANNELS"},
      {COLLET_FEATURE_BLOCKS, "COLLET_FEATURE_BLOCKS"},
      {COLLET_FEATURE_ZERO_POINTS, "COLLET_FEATURE_ZERO_POINTS"},
      {COLLET_FEATURE_SHORT_FLOATS, "COLLET_FEATURE_SHORT_FLOATS"},
      {COLLET_FEATURE_PADDING, "COLLET_FEATURE_PADDING"},
      {COLLET_FEATURE_TERMS, "COLLET_FEATURE_TERMS"}};
  std::string out;
  for (const auto& [feature, name] : kNames) {
    if ((features & feature) == 0) continue;
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

class Compiler {
 public:
  Compiler(Client& client, const ProgramModule& source, const collet_compile_request& request,
           const CompiledParts* parts, Dump& dump)
      : client_(client),
        source_(source),
        request_(request),
        dump_(dump),
        programs_(client, request, optimization(), parts, dump),
        core_(std::make_shared<ExecutableCore>(client)) {}

  Expected<std::shared_ptr<ExecutableCore>> run(bool& from_cache) {
    module_ = source_.module().clone();
    COLLET_TRY(participants());
    COLLET_TRY(progress(0, "verify"));
    COLLET_TRY(hlo::verify_module(*module_));
    dump_.module("read", *module_);
    COLLET_TRY(progress(0.05, "prepare"));
    COLLET_TRY(partition_arrays());
    hlo::PassContext context = this->context();
    core_->donates.assign(source_.parameters().size(), 0);
    for (uint32_t a : hlo::donated_arguments(*module_)) core_->donates[a] = 1;
    COLLET_TRY(hlo::prepare(*module_, context, observer()).status());
    COLLET_TRY(join_transfers(context));

    hlo::ContentId key;
    if (!request_.no_cache || core_->across) {
      COLLET_ASSIGN(key, cache_key());
    }
    if (!request_.no_cache && !dump_.on()) {  // a dump shows the whole compilation
      if (auto known = client_.find_executable(key)) {
        from_cache = true;
        return known;
      }
    }
    COLLET_TRY(progress(0.2, "legalize"));
    COLLET_TRY(legalize());
    dump_.module("legal", *module_);
    COLLET_TRY(progress(0.4, "compile"));
    COLLET_TRY(partition_and_compile());
    COLLET_TRY(place_constants());
    COLLET_TRY(describe());
    COLLET_TRY(dump_.status());
    share_constants(*module_);
    for (PlanConstant& constant : core_->plan.constants) share(constant.value);
    keep_module();
    from_cache = !programs_.any_new();
    if (!request_.no_cache) client_.keep_executable(key, core_);
    return core_;
  }

  // Returns the program that the executable keeps: the source, or one that has no second copy of large constants. The caller
  // releases it.
  Expected<ProgramModule*> kept_source(ProgramModule& source) {
    if (has_large_constants(source.module())) {
      std::unique_ptr<hlo::Module> module = source.module().clone();
      if (share_constants(*module)) return ProgramModule::make(std::move(module));
    }
    source.retain();
    return &source;
  }

 private:
  static bool is_large(const hlo::Literal& literal) {
    return literal.valid() && literal.shape().is_array() &&
           static_cast<uint64_t>(literal.byte_size()) >= Client::kLargeConstant && literal.dynamic_sizes().empty();
  }
  static bool has_large_constants(const hlo::Module& module) {
    for (hlo::CompId c : module.computations())
      for (hlo::InstrId id : module[c].order)
        if (module[id].op == hlo::Op::CONSTANT &&
            is_large(module.literal(module[id].as<hlo::ConstantAttrs>().constant)))
          return true;
    return false;
  }
  // Replaces a large constant by a view of its copy on the device, if the host can read that. Returns false if it cannot.
  bool share(hlo::Literal& literal) {
    if (!is_large(literal)) return false;
    const MemoryRef memory = client_.readable_constant(client_.device(core_->devices[0]), content_ids_.of(literal));
    if (!memory || memory->capacity < static_cast<uint64_t>(literal.byte_size())) return false;
    literal = hlo::Literal::borrow(literal.shape(), memory->host, std::make_shared<MemoryRef>(memory));
    return true;
  }
  bool share_constants(hlo::Module& module) {
    bool any = false;
    for (hlo::CompId c : module.computations())
      for (hlo::InstrId id : module[c].order)
        if (module[id].op == hlo::Op::CONSTANT)
          any |= share(module.literal(module[id].as<hlo::ConstantAttrs>().constant));
    return any;
  }

  Status progress(double done, const char* stage) const {
    if (request_.progress && request_.progress(request_.user, done, stage) != 0)
      return Status(Code::Cancelled, std::string("the caller gave up at the stage '") + stage + "'");
    return ok_status();
  }

  uint32_t optimization() const {
    return request_.optimization || request_.optimization_given ? request_.optimization : 2;
  }

  Status participants() {
    hlo::ModuleHeader& header = module_->header();
    if (request_.replica_count) header.replica_count = request_.replica_count;
    if (request_.partition_count) header.num_partitions = request_.partition_count;
    header.replica_count = std::max<int64_t>(header.replica_count, 1);
    header.num_partitions = std::max<int64_t>(header.num_partitions, 1);
    if (header.replica_count > kMostParticipants || header.num_partitions > kMostParticipants ||
        header.replica_count * header.num_partitions > kMostParticipants)
      return invalid_argument((header.line && !request_.replica_count && !request_.partition_count
                                   ? "line " + std::to_string(header.line) + ": "
                                   : std::string()) +
                              std::to_string(header.replica_count) + " replicas of " +
                              std::to_string(header.num_partitions) + " partitions are more than " +
                              std::to_string(kMostParticipants) + " participants");
    core_->replicas = static_cast<uint32_t>(header.replica_count);
    core_->partitions = static_cast<uint32_t>(header.num_partitions);
    const uint32_t n = core_->total();
    if (request_.assignment_count && (request_.assignment_count != n || !request_.assignment))
      return invalid_argument("an assignment of " + std::to_string(request_.assignment_count) + " devices for " +
                              std::to_string(n) + " participants");
    std::vector<uint32_t> assignment;
    for (uint32_t p = 0; p < n; ++p) assignment.push_back(request_.assignment_count ? request_.assignment[p] : p);
    if (std::set(assignment.begin(), assignment.end()).size() < n)
      return invalid_argument("the assignment names a device twice: each participant has one of its own");
    COLLET_TRY(place(assignment));
    for (uint32_t d : core_->devices) {
      if (n > 1 && d >= client_.device_count())
        return invalid_argument("the program needs " + std::to_string(n) + " devices; backend '" +
                                client_.backend().name() + "' has " + std::to_string(client_.device_count()));
      COLLET_TRY(client_.check_device(d));
    }
    patterns_ = client_.backend().patterns(core_->devices[0]);
    core_->together = n == 1 || (facts().has(COLLET_TRAIT_COLLECTIVES) && !core_->across);
    core_->name = source_.name();
    core_->arguments = source_.parameters();
    core_->results = source_.results();
    core_->optimization = optimization();
    core_->no_fusion = request_.no_fusion != 0;
    core_->ignore_costs = request_.ignore_costs != 0;
    core_->own_results = request_.own_results != 0;
    core_->whole_arrays = request_.partition != 0;
    return ok_status();
  }

  // Finds the participants of this process and their devices. In a group of processes the assignment has numbers of the
  // devices of all.
  Status place(const std::vector<uint32_t>& assignment) {
    Processes* const processes = client_.processes();
    if (!processes) {
      core_->devices = assignment;
      return ok_status();
    }
    auto across = std::make_unique<Across>();
    across->processes = processes;
    if (processes->all_have_exchange()) across->backend = &client_.backend();
    across->name = source_.name();
    across->replicas = core_->replicas;
    across->partitions = core_->partitions;
    across->assignment = assignment;
    std::vector<uint32_t> counts(processes->size());
    for (uint32_t p = 0; p < assignment.size(); ++p) {
      if (assignment[p] >= processes->devices().size())
        return invalid_argument("the program needs device " + std::to_string(assignment[p]) + "; the " +
                                std::to_string(processes->size()) + " processes have " +
                                std::to_string(processes->devices().size()));
      const GlobalDevice& device = processes->devices()[assignment[p]];
      across->ordinals.push_back(counts[device.process]++);
      across->place.push_back(device.process);
      if (device.process != processes->rank()) continue;
      across->numbers.push_back(p);
      core_->devices.push_back(device.device);
    }
    const std::set<uint32_t> members(across->place.begin(), across->place.end());
    across->members.assign(members.begin(), members.end());
    if (core_->devices.empty())
      return invalid_argument("no participant of the program runs in " + processes->name(processes->rank()));
    if (members.size() > 1) core_->across = std::move(across);
    return ok_status();
  }

  // Runs SPMD partitioning, before all other steps.
  Status partition_arrays() {
    if (!request_.partition || core_->partitions == 1) return ok_status();
    hlo::PassContext context = this->context();
    COLLET_TRY(hlo::spmd_partition(*module_, context, observer()).status());
    COLLET_TRY(hlo::verify_module(*module_));
    COLLET_ASSIGN(Signature tiles, signature_of(*module_));
    core_->arguments = std::move(tiles.parameters);
    core_->results = std::move(tiles.results);
    core_->argument_shardings = std::move(tiles.parameter_shardings);
    core_->result_shardings = std::move(tiles.result_shardings);
    dump_.module("partitioned", *module_);
    return ok_status();
  }

  const DeviceFacts& facts() const { return client_.backend().devices()[core_->devices[0]]; }

  hlo::PassContext context() {
    hlo::PassContext context;
    context.control_flow = facts().has(COLLET_TRAIT_CONTROL_FLOW);
    if (facts().has(COLLET_TRAIT_UNROLLED_LOOPS)) context.unroll_layers();
    context.replica_count = core_->replicas;
    context.partition_count = core_->partitions;
    context.wants_pattern = [this](std::string_view name, uint32_t features) {
      return wants_pattern(name, 0, features);
    };
    context.not_offered = [this](const hlo::Module& m, hlo::InstrId id, std::string_view name, uint32_t features) {
      note_not_offered(m[id], name, features);
    };
    for (const Backend::Pattern& one : patterns_)
      if (one.matcher) context.declared_patterns.push_back(one.matcher);
    context.keep_composite = [this](const hlo::Module& m, hlo::InstrId id) {
      const auto& call = m[id].as<hlo::CallAttrs>();
      return wants_pattern(call.name, call.version, 0) && !declined_.contains(id);
    };
    return context;
  }

  // True if the device wants to be asked about the pattern or composite, for a group that needs these COLLET_FEATURE_*.
  bool wants_pattern(std::string_view name, int64_t version, uint32_t features) const {
    const std::string exact = std::string(name) + "@" + std::to_string(version);
    return std::any_of(patterns_.begin(), patterns_.end(), [&](const Backend::Pattern& wanted) {
      return (wanted.name == name || wanted.name == exact) && (features & ~wanted.features) == 0;
    });
  }

  // Records a group that needs features that the device does not state, as one that it declined.
  void note_not_offered(const hlo::Instruction& root, std::string_view name, uint32_t features) {
    uint32_t missing = features;
    for (const Backend::Pattern& one : patterns_)
      if (one.name == name) missing &= ~one.features;
    const auto element = static_cast<uint32_t>(root.shape.type());
    Question& one = questions_[{COLLET_QUESTION_PATTERN, element, std::string(name) + " not offered"}];
    one.kind = COLLET_QUESTION_PATTERN;
    one.element = element;
    one.name = name;
    if (one.declined++ == 0) one.reason = "not offered: it needs " + features_text(missing);
  }

  // Offers patterns to the device; those that it declines are expanded into single ops again.
  Status offer_patterns() {
    if (patterns_.empty()) return ok_status();
    hlo::PassContext context = this->context();
    // What a group was made of is dead where nothing else reads it.
    constexpr std::string_view kFind[] = {"find_patterns", "eliminate_dead"};
    COLLET_TRY(hlo::run_passes(*module_, context, kFind, observer()).status());
    COLLET_TRY(ask());
    for (hlo::CompId c : module_->computations())
      for (hlo::InstrId id : (*module_)[c].order) {
        const hlo::Instruction& instr = (*module_)[id];
        if (instr.op != hlo::Op::CALL || !instr.as<hlo::CallAttrs>().is_composite) continue;
        if (device_.of(id).answer != COLLET_ACCEPT) declined_.insert(id);
      }
    if (declined_.empty()) return ok_status();
    COLLET_TRY(hlo::run_passes(*module_, context, std::array{std::string_view("inline_calls")}, observer()).status());
    return hlo::optimize(*module_, context, observer()).status();
  }

  hlo::PassObserver observer() {
    hlo::PassObserver observer;
    observer.after = [this](std::string_view pass, int, const hlo::Module& module, bool changed) {
      if (changed) dump_.module("after." + std::string(pass), module);
    };
    return observer;
  }

  // Turns transfers between participants into permutes: neither the runtime nor the program block has transfers between unlike ones.
  Status join_transfers(hlo::PassContext& context) {
    if (core_->total() == 1) return ok_status();
    constexpr std::string_view kJoin[] = {"join_transfers", "flatten_tuples", "eliminate_dead"};
    COLLET_TRY(hlo::run_passes(*module_, context, kJoin, observer()).status());
    for (hlo::CompId c : module_->computations())
      for (hlo::InstrId id : (*module_)[c].order) {
        const hlo::Instruction& instr = (*module_)[id];
        if ((instr.op != hlo::Op::SEND && instr.op != hlo::Op::RECV) || hlo::transfer_pairs(instr).empty()) continue;
        const std::string what = "'" + std::string(instr.name) + "' (" + std::string(op_info(instr.op).text) + "): ";
        if (core_->replicas > 1 && core_->partitions > 1)
          return unimplemented(what + "transfers are supported in programs of replicas or of partitions, not of both");
        return unimplemented(what +
                             "a send and a recv are supported in one computation, with the same pairs in which nobody "
                             "occurs twice, if what is sent does not depend on what is received");
      }
    return ok_status();
  }

  // Returns the content of a program that has no names.
  static hlo::ContentId content_of(const hlo::Program& program) {
    hlo::ContentId key = hlo::content_id(program.block.bytes());
    for (const hlo::ConstantArgument& c : program.constants)
      mix(key, {reinterpret_cast<const char*>(&c.id), sizeof c.id});
    return key;
  }

  // Returns what is equal in all processes that run the program, whose content here is `own`: each process registers its host
  // functions under names of its own.
  Expected<hlo::ContentId> content_in_all_processes(const hlo::ContentId& own) {
    if (key_of_calls(host_functions(), *module_).empty()) return own;
    const std::unique_ptr<hlo::Module> module = module_->clone();
    for (hlo::CompId c : module->computations())
      for (hlo::InstrId id : (*module)[c].order) {
        hlo::Instruction& instr = (*module)[id];
        if (instr.op != hlo::Op::CUSTOM_CALL || !called_function(host_functions(), instr)) continue;
        auto* attributes = module->make<hlo::CustomCallAttrs>();
        *attributes = instr.as<hlo::CustomCallAttrs>();
        attributes->target = "host function";
        instr.attrs = attributes;
      }
    hlo::ContentIds ids;
    hlo::ProgramOptions options;
    options.without_names = true;
    options.content_ids = &ids;
    COLLET_ASSIGN(const hlo::Program program, hlo::write_program(*module, options));
    return content_of(program);
  }

  // Returns a key of everything on which the result of the compilation depends.
  Expected<hlo::ContentId> cache_key() {
    hlo::ProgramOptions options;
    options.without_names = true;
    options.content_ids = &content_ids_;
    COLLET_ASSIGN(const hlo::Program program, hlo::write_program(*module_, options));
    hlo::ContentId key = content_of(program);
    if (core_->across) {
      COLLET_ASSIGN(core_->across->content, content_in_all_processes(key));
      for (const uint32_t device : core_->across->assignment)
        mix(core_->across->content, std::to_string(device) + "\n");
    }
    mix(key, {reinterpret_cast<const char*>(core_->donates.data()), core_->donates.size()});
    // A number precedes each list, so that different lists never give the same sequence of texts.
    const auto mix_count = [&](size_t count) { mix(key, std::to_string(count)); };
    mix(key, client_.backend().name());
    mix(key, client_.backend().version());
    mix_count(core_->across ? core_->across->place.size() : 0);
    if (core_->across)
      for (const auto* list : {&core_->across->place, &core_->across->numbers})
        for (const uint32_t number : *list) mix(key, std::to_string(number) + "\n");
    mix_count(core_->devices.size());
    for (uint32_t d : core_->devices) mix(key, std::to_string(d) + "\n" + client_.backend().devices()[d].fingerprint);
    mix_count(client_.fallback() ? 1 : 0);
    if (client_.fallback()) {
      mix(key, client_.fallback()->name());
      mix(key, client_.fallback()->version());
      mix(key, client_.fallback()->devices()[0].fingerprint);
    }
    mix_count(patterns_.size());
    for (const Backend::Pattern& one : patterns_) {
      mix(key, one.name);
      mix(key, one.text);
    }
    mix(key, std::to_string(optimization()) + (request_.no_fusion ? "f" : "F") + (request_.ignore_costs ? "i" : "") +
                 (request_.own_results ? "r" : ""));
    mix(key, key_of_calls(host_functions(), *module_));
    for (const auto* types : {&core_->arguments, &core_->results}) {
      mix_count(types->size());
      for (const ArrayType* type : *types) mix(key, type->to_string());
    }
    for (const auto* shardings : {&core_->argument_shardings, &core_->result_shardings}) {
      mix_count(shardings->size());
      for (const std::string& text : *shardings) mix(key, text);
    }
    return key;
  }

  Status ask() {
    hlo::ProgramOptions options;
    options.content_ids = &content_ids_;
    COLLET_ASSIGN(const hlo::Program program, hlo::write_program(*module_, options));
    const bool several = core_->total() > 1;
    COLLET_ASSIGN(device_, Verdicts::ask(client_.backend(), core_->devices[0], *module_, program,
                                         several && !core_->together, host_functions()));
    if (client_.fallback()) {
      COLLET_ASSIGN(fallback_, Verdicts::ask(*client_.fallback(), 0, *module_, program, several, host_functions()));
    }
    for (hlo::CompId c : module_->computations())
      for (hlo::InstrId id : (*module_)[c].order)
        if (Question* one = question_about(id)) {
          one->asked = true;
          const Verdict& verdict = device_.of(id);
          one->accepted |= verdict.answer == COLLET_ACCEPT;
          if (one->kind == COLLET_QUESTION_OP || verdict.answer == COLLET_ACCEPT) continue;
          if (one->declined++ == 0) one->reason = verdict.reason;
        }
    return ok_status();
  }

  // Returns the record of the questions about instructions like this one; null if the device is not asked about it.
  Question* question_about(hlo::InstrId id) {
    const hlo::Module& m = *module_;
    const hlo::Instruction& instr = m[id];
    const bool pattern = instr.op == hlo::Op::CALL && instr.as<hlo::CallAttrs>().is_composite;
    const bool fusion = instr.op == hlo::Op::FUSION;
    if (op_info(instr.op).op_class == hlo::OpClass::EXECUTOR && !pattern && !fusion) return nullptr;
    if (!device_.asked(id)) return nullptr;
    const hlo::Shape* shape = &instr.shape;
    while (shape->is_tuple() && !shape->elements().empty()) shape = &shape->element(0);
    const auto element = static_cast<uint32_t>(shape->type());
    std::string name(op_info(instr.op).text);
    if (pattern) name = std::string_view(instr.as<hlo::CallAttrs>().name);
    if (fusion) name = ops_of_fusion(m, instr, " ");
    const uint32_t kind = pattern ? COLLET_QUESTION_PATTERN : fusion ? COLLET_QUESTION_FUSION : COLLET_QUESTION_OP;
    Question& one = questions_[{kind, element, name}];
    one.kind = kind;
    one.element = element;
    one.name = name;
    return &one;
  }

  // Records the questions to the device, and which of these ops run there.
  void note_questions() {
    for (size_t u = 0; u < core_->plan.units.size(); ++u) {
      if (core_->plan.units[u].side != Side::Device) continue;
      for (hlo::InstrId id : lowered_.sources[u].cluster->members)
        if (Question* one = question_about(id)) ++one->placed;
    }
    for (const Backend::Pattern& pattern : patterns_) {
      const std::string& name = pattern.name;
      const std::string bare = name.substr(0, name.find('@'));
      const bool known = std::any_of(questions_.begin(), questions_.end(), [&](const auto& entry) {
        return entry.second.kind == COLLET_QUESTION_PATTERN && entry.second.name == bare;
      });
      if (!known) core_->questions.push_back({.kind = COLLET_QUESTION_PATTERN, .name = name});
    }
    for (auto& [key, one] : questions_) core_->questions.push_back(std::move(one));
  }

  std::span<const collet_host_function> host_functions() const {
    return {request_.host_functions, request_.host_functions ? request_.host_function_count : 0};
  }

  hlo::Claim claim(hlo::InstrId id) const {
    if (called_function(host_functions(), (*module_)[id])) return hlo::Claim::Leave;
    const Verdict& device = device_.of(id);
    if (device.answer == COLLET_ACCEPT) return hlo::Claim::Take;
    if (device.answer == COLLET_EXPAND) return hlo::Claim::Expand;
    if (!client_.fallback()) return hlo::Claim::Expand;
    const uint32_t fallback = fallback_.of(id).answer;
    return fallback == COLLET_ACCEPT ? hlo::Claim::Leave : hlo::Claim::Expand;
  }

  // Expands declined ops, forms fusions that the device accepts, and orders the instructions.
  Status legalize() {
    COLLET_TRY(offer_patterns());
    hlo::PassContext context = this->context();
    Status failure;
    context.prepare_claims = [&](const hlo::Module&) {
      Status status = ask();
      if (failure.ok()) failure = std::move(status);
    };
    context.claim = [this](const hlo::Module&, hlo::InstrId id) { return claim(id); };
    context.fusible = [this](const hlo::Module&, hlo::InstrId id) { return device_.of(id).answer == COLLET_ACCEPT; };
    context.take_fusions = [&](const hlo::Module&, std::span<const hlo::InstrId> fusions) {
      Status status = ask();
      if (failure.ok()) failure = std::move(status);
      std::vector<bool> taken;
      for (hlo::InstrId id : fusions) taken.push_back(device_.of(id).answer == COLLET_ACCEPT);
      return taken;
    };
    COLLET_TRY(hlo::legalize(*module_, context, observer()).status());
    COLLET_TRY(failure);
    if (!request_.no_fusion && client_.backend().computes()) {
      COLLET_TRY(ask());
      COLLET_TRY(hlo::propose_fusions(*module_, context, observer()).status());
      COLLET_TRY(failure);
    }
    if (request_.own_results) COLLET_TRY(hlo::own_results(*module_).status());
    COLLET_TRY(hlo::run_passes(*module_, context, std::array{std::string_view("schedule")}, observer()).status());
    dump_.module("offered", *module_);
    // The buffer plan is a suggestion that clusters inherit, because their ops keep the module's order. If planning
    // fails, there is none.
    if (auto plan = hlo::plan_buffers(*module_); plan.ok()) buffers_ = *std::move(plan);
    return ask();
  }

  Status partition_and_compile() {
    for (int attempt = 0;; ++attempt) {
      const PartitionInput input = {*module_,
                                    device_,
                                    facts(),
                                    "backend '" + client_.backend().name() + "'",
                                    client_.fallback() ? &fallback_ : nullptr,
                                    client_.fallback() ? &client_.fallback()->devices()[0] : nullptr,
                                    client_.fallback() ? "'" + client_.fallback()->name() + "'" : "",
                                    constraints_,
                                    core_->total() > 1 && !core_->together,
                                    core_->total() > 1,
                                    core_->across != nullptr,
                                    request_.ignore_costs != 0,
                                    host_functions(),
                                    request_.own_results != 0};
      COLLET_ASSIGN(partition_, partition(input));
      COLLET_ASSIGN(lowered_, lower(*module_, partition_, content_ids_));
      bool again = false;
      COLLET_TRY(compile_units(again));
      if (!again) break;
      if (attempt == kMostRejections)
        return unimplemented("backend '" + client_.backend().name() + "' rejected too many parts of the program");
    }
    core_->plan = std::move(lowered_.plan);
    find_result_layouts(core_->plan);
    return ok_status();
  }

  // Finds the layouts of the entry's results. Only results of launches can have one; others are dense.
  static void find_result_layouts(Plan& plan) {
    const Sequence& entry = plan.sequences[0];
    std::vector<const Layout*> of_slots(entry.slots.size());
    bool any = false;
    for (const Step& step : entry.steps) {
      if (step.kind != Step::Kind::Launch) continue;
      const CompiledFacts& facts = plan.units[step.unit].locals[0].program->facts();
      for (size_t i = 0; i < step.out.size(); ++i) {
        of_slots[step.out[i]] = facts.result_layout(i);
        any |= facts.result_layout(i) != nullptr;
      }
    }
    if (any)
      for (const uint32_t slot : entry.results) plan.result_layouts.push_back(of_slots[slot]);
  }

  // Compiles the clusters. `again` is set if a cluster was rejected and constraints_ was changed accordingly.
  Status compile_units(bool& again) {
    std::map<const CompiledProgram*, bool> met;
    for (size_t u = 0; u < lowered_.plan.units.size(); ++u) {
      CompiledCluster& unit = lowered_.plan.units[u];
      Status status = compile_unit(unit, lowered_.sources[u]);
      if (!status.ok()) {
        const bool may_split = status.code() == Code::Unimplemented || status.code() == Code::ResourceExhausted;
        if (!may_split || unit.side != Side::Device || !learn(*lowered_.sources[u].cluster, status)) return status;
        again = true;
        return ok_status();
      }
      unit.shared = !met.try_emplace(unit.locals[0].program.get(), true).second;
      COLLET_TRY(progress(0.4 + 0.6 * static_cast<double>(u + 1) / static_cast<double>(lowered_.plan.units.size()),
                          "compile"));
    }
    return ok_status();
  }

  bool accepts_constants(const ClusterPlan& cluster, Side side) const {
    const Verdicts& verdicts = side == Side::Device ? device_ : fallback_;
    for (hlo::InstrId id : cluster.members)
      if ((*module_)[id].op == hlo::Op::CONSTANT && verdicts.of(id).answer != COLLET_ACCEPT) return false;
    return true;
  }

  Status compile_unit(CompiledCluster& unit, const Lowered::UnitSource& source) {
    const ClusterPlan& cluster = *source.cluster;
    std::vector<hlo::ProgramAlias> aliases = unit.aliases;
    aliases.insert(aliases.end(), unit.updates.begin(), unit.updates.end());
    const hlo::Cluster spec = {source.computation, cluster.members, cluster.inputs, cluster.outputs, aliases};
    const bool together = unit.side == Side::Device && core_->together;
    hlo::ProgramOptions options;
    options.constants_as_arguments = !accepts_constants(cluster, unit.side);
    if (unit.side == Side::Device && facts().has(COLLET_TRAIT_INLINE_CONSTANTS)) options.inline_limit = SIZE_MAX;
    options.single_participant = !together;
    options.content_ids = &content_ids_;
    options.scalars_by_value = unit.side == Side::Device && facts().has(COLLET_TRAIT_SCALARS);
    if (buffers_) options.arena_offset = [this](hlo::Leaf leaf) { return buffers_->offset(leaf); };
    COLLET_ASSIGN(const hlo::Program program, hlo::write_cluster(*module_, spec, options));
    if (dump_.on()) {
      auto text = hlo::print_program(program.block.data(), program.block.size());
      dump_.text("program", text.ok() ? *text : text.status().to_string());
    }
    unit.by_value.clear();
    if (options.scalars_by_value)
      for (uint32_t i = 0; i < cluster.inputs.size(); ++i)
        unit.by_value.push_back((collet_value_at(program.get(), i)->flags & COLLET_VALUE_SCALAR) != 0);
    options.without_names = true;
    COLLET_ASSIGN(const hlo::Program nameless, hlo::write_cluster(*module_, spec, options));
    const hlo::ContentId content = hlo::content_id(nameless.block.bytes());

    const bool apart = unit.side == Side::Device && !together;
    const std::span<const uint32_t> devices = core_->devices;
    unit.locals.clear();
    for (uint32_t p = 0; p < (apart ? core_->participants() : 1); ++p) {
      CompiledCluster::Local local;
      COLLET_ASSIGN(local.program,
                    programs_.compile(unit.side, apart ? devices.subspan(p, 1) : devices, !together, content, program));
      if (!local.program->facts().wants_prepared.empty())
        local.prepared =
            std::make_shared<Residency>(core_->participants(), static_cast<uint32_t>(cluster.inputs.size()));
      unit.locals.push_back(std::move(local));
    }
    return bind_constants(unit, program);
  }

  // Changes the limits for the next attempt to compile according to a rejection. Returns false if nothing is left to try.
  bool learn(const ClusterPlan& cluster, const Status& status) {
    std::vector<hlo::InstrId> rejected = programs_.rejected();
    std::erase_if(rejected, [&](hlo::InstrId id) {
      return std::find(cluster.members.begin(), cluster.members.end(), id) == cluster.members.end();
    });
    if (!client_.fallback() && rejected.empty()) return false;
    bool any = false;
    const std::vector<hlo::InstrId>& named = rejected.empty() ? cluster.members : rejected;
    for (hlo::InstrId id : named) {
      if ((*module_)[id].op == hlo::Op::CONSTANT) continue;
      if (!rejected.empty() && constraints_.cuts[id]++ < kMostCuts) {
        any = true;
      } else if (client_.fallback() && fallback_.of(id).answer == COLLET_ACCEPT) {
        any |= constraints_.fallback.try_emplace(id, "not compiled: " + status.message()).second;
      }
    }
    return any;
  }

  Status bind_constants(CompiledCluster& unit, const hlo::Program& program) {
    for (const hlo::ConstantArgument& constant : program.constants)
      unit.argument_bytes.push_back(static_cast<uint64_t>(literal_of(constant).byte_size()));
    const bool together = unit.side == Side::Device && core_->together;
    for (size_t l = 0; l < unit.locals.size(); ++l) {
      CompiledCluster::Local& local = unit.locals[l];
      local.absorbed.assign(program.constants.size(), 0);
      for (uint32_t index : local.program->facts().absorbed) {
        const collet_constant* c = collet_constant_at(program.get(), index);
        for (size_t i = 0; i < program.constants.size(); ++i)
          if (program.constants[i].argument == c->argument) local.absorbed[i] = 1;
      }
      for (size_t p = 0; p < (together ? core_->participants() : 1); ++p) {
        Device& device =
            unit.side == Side::Fallback ? client_.fallback_device() : client_.device(core_->devices[l + p]);
        std::vector<MemoryRef>& placed = local.constants.emplace_back(program.constants.size());
        for (size_t i = 0; i < placed.size(); ++i) {
          const hlo::ConstantArgument& constant = program.constants[i];
          if (local.absorbed[i]) continue;
          COLLET_ASSIGN(placed[i], client_.constant(device, constant.id, literal_of(constant)));
        }
      }
    }
    return ok_status();
  }

  const hlo::Literal& literal_of(const hlo::ConstantArgument& constant) const {
    return module_->literal((*module_)[constant.instr]);
  }

  Status place_constants() {
    for (PlanConstant& constant : core_->plan.constants)
      for (uint32_t p = 0; p < core_->participants(); ++p) {
        Device& device =
            constant.side == Side::Fallback ? client_.fallback_device() : client_.device(core_->devices[p]);
        MemoryRef memory;
        if (constant.value.byte_size() > 0) {
          COLLET_ASSIGN(memory, client_.constant(device, constant.id, constant.value));
        }
        constant.memory.push_back(std::move(memory));
      }
    return ok_status();
  }

  // Keeps the module if the runtime runs collectives or calls functions of the embedder, because these need its
  // instructions.
  void keep_module() {
    bool needed = false;
    for (Sequence& s : core_->plan.sequences)
      for (Step& step : s.steps) {
        needed |= step.kind == Step::Kind::Collective || step.kind == Step::Kind::HostCall;
        if (step.kind != Step::Kind::HostCall) continue;
        const collet_host_function* f = called_function(host_functions(), (*module_)[step.instr]);
        step.unit = static_cast<uint32_t>(core_->host_functions.size());
        core_->host_functions.push_back({f->target, f->user, f->call});
      }
    if (needed) core_->module = std::move(module_);
  }

  Status describe() {
    core_->facts.struct_size = sizeof core_->facts;
    core_->facts.argument_count = static_cast<uint32_t>(core_->arguments.size());
    core_->facts.result_count = static_cast<uint32_t>(core_->results.size());
    core_->facts.participants = core_->total();
    core_->facts.local_participants = core_->participants();
    const ExplainInput input = {*module_,
                                partition_,
                                lowered_,
                                *core_,
                                client_.backend().name(),
                                client_.fallback() ? client_.fallback()->name() : "",
                                facts().kind};
    note_questions();
    count_facts(input, core_->facts);
    core_->explanation = explain_text(input);
    core_->explanation_json = explain_json(input);
    dump_.text("plan.txt", core_->explanation);
    dump_.text("plan.json", core_->explanation_json);
    return append_explanation(core_->explanation, core_->explanation_json);
  }

  Client& client_;
  const ProgramModule& source_;
  const collet_compile_request& request_;
  Dump& dump_;
  ProgramCompiler programs_;
  std::shared_ptr<ExecutableCore> core_;
  std::unique_ptr<hlo::Module> module_;
  Verdicts device_, fallback_;
  // Patterns about which the device wants to be asked.
  std::vector<Backend::Pattern> patterns_;
  std::map<std::tuple<uint32_t, uint32_t, std::string>, Question> questions_;  // by kind, element type and name
  std::set<hlo::InstrId> declined_;                                            // calls that were offered and declined
  std::optional<hlo::BufferPlan> buffers_;
  hlo::ContentIds content_ids_;
  Constraints constraints_;
  Partition partition_;
  Lowered lowered_;
};

}  // namespace

Expected<Executable*> compile(Client& client, ProgramModule& module, const collet_compile_request& request,
                              const CompiledParts* parts) {
  if (request.optimization > 3) return invalid_argument("optimization goes from 0 to 3");
  if (request.host_function_count && !request.host_functions) return invalid_argument("no host functions");
  for (uint32_t i = 0; i < request.host_function_count; ++i)
    if (!request.host_functions[i].target || !request.host_functions[i].call)
      return invalid_argument("host function " + std::to_string(i) + " lacks its target or what is to be called");
  const auto start = std::chrono::steady_clock::now();
  const Span span(COLLET_SPAN_COMPILE, module.name());
  COLLET_ASSIGN(Dump dump, Dump::open(request.dump_to, request.dump_only, module.name()));
  bool from_cache = false;
  Compiler compiler(client, module, request, parts, dump);
  COLLET_ASSIGN(std::shared_ptr<ExecutableCore> core, compiler.run(from_cache));
  COLLET_ASSIGN(ProgramModule * source, compiler.kept_source(module));
  const auto took =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start).count();
  return new Executable(client, *source, std::move(core), from_cache, static_cast<uint64_t>(took));
}

Expected<std::string> program_of(const Executable& executable, uint32_t format) {
  const ExecutableCore& core = executable.core();
  const hlo::Module& source = executable.source().module();
  if (!core.whole_arrays || core.partitions == 1) return write_module(source, format);
  const std::unique_ptr<hlo::Module> module = source.clone();
  module->header().replica_count = core.replicas;
  module->header().num_partitions = core.partitions;
  hlo::PassContext context;
  context.replica_count = core.replicas;
  context.partition_count = core.partitions;
  COLLET_TRY(hlo::spmd_partition(*module, context).status());
  return write_module(*module, format);
}

}  // namespace collet::runtime

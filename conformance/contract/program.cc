// SPDX-License-Identifier: Apache-2.0
#include "conformance/contract/program.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "conformance/contract/samples.h"
#include "hlo/base/hash.h"
#include "hlo/eval/evaluator.h"
#include "hlo/program/leaves.h"
#include "hlo/text/parser.h"
#include "hlo/verify/verify.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using hlo::Op;
using hlo::Shape;
using hlo::Type;

bool is_control_flow(uint32_t opcode) {
  return opcode == COLLET_OP_WHILE || opcode == COLLET_OP_CONDITIONAL || opcode == COLLET_OP_CALL;
}

bool is_declared(const Device& device, const collet_program* p, uint32_t value, uint32_t needed) {
  const uint32_t element = collet_value_type(p, value)->element;
  if (element == COLLET_TYPE_TOKEN || element == COLLET_TYPE_OPAQUE) return true;
  return (device.type_flags(element) & (needed | COLLET_MAY_COMPUTE)) != 0;
}

// The checks that the SDK makes before it calls `supports` for an op: opset, control flow, and declared types.
bool may_offer(const Instance& instance, const Device& device, const collet_program* p, uint32_t number) {
  const collet_op* op = collet_op_at(p, number);
  const hlo::OpInfo& info = hlo::op_info(static_cast<Op>(op->opcode));
  if (op->since > instance.opset()) return false;
  if (is_control_flow(op->opcode)) {
    if (!device.has(COLLET_TRAIT_CONTROL_FLOW)) return false;
    for (uint32_t r = 0; r < op->regions.count; ++r) {
      const collet_region* region = collet_region_at(p, op->regions.first + r);
      for (uint32_t i = 0; i < region->ops.count; ++i)
        if (!may_offer(instance, device, p, region->ops.first + i)) return false;
    }
  }
  const bool moves = info.has(COLLET_OP_MOVES) || op->opcode == COLLET_OP_CONSTANT || op->opcode == COLLET_OP_IOTA;
  const uint32_t needed = moves ? COLLET_MAY_MOVE : COLLET_MAY_COMPUTE;
  for (uint32_t i = 0; i < op->operands.count; ++i)
    if (!is_declared(device, p, collet_operand(p, op, i), needed)) return false;
  for (uint32_t i = 0; i < op->results.count; ++i)
    if (!is_declared(device, p, op->results.first + i, needed)) return false;
  return true;
}

// Appends the ops of a region, and those in the bodies of control flow, about which the SDK asks too.
void append_ops(const collet_program* p, const collet_region* region, std::vector<uint32_t>& out) {
  for (uint32_t i = 0; i < region->ops.count; ++i) {
    const uint32_t number = region->ops.first + i;
    out.push_back(number);
    const collet_op* op = collet_op_at(p, number);
    if (!is_control_flow(op->opcode)) continue;
    for (uint32_t r = 0; r < op->regions.count; ++r) append_ops(p, collet_region_at(p, op->regions.first + r), out);
  }
}

bool takes_constants(Instance& instance, const collet_program* p, uint32_t device) {
  std::vector<uint32_t> constants;
  for (const uint32_t op : entry_ops(p))
    if (collet_op_at(p, op)->opcode == COLLET_OP_CONSTANT) constants.push_back(op);
  std::vector<collet_verdict> verdicts;
  if (!ask(instance, p, constants, verdicts, device)) return false;
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const collet_verdict& verdict) { return verdict.answer == COLLET_ACCEPT; });
}

}  // namespace

Expected<std::unique_ptr<TestProgram>> TestProgram::make(std::string_view body, std::string_view aliases,
                                                         const TestProgramOptions& how) {
  std::string text = "HloModule contract" + std::string(how.name_bytes, 'x');
  if (how.replicas > 1) text += fmt::format(", replica_count={}", how.replicas);
  if (how.partitions > 1) text += fmt::format(", num_partitions={}", how.partitions);
  if (!aliases.empty()) text += fmt::format(", input_output_alias={{ {} }}", aliases);
  text += "\n\n" + std::string(body);
  std::unique_ptr<TestProgram> out(new TestProgram);
  COLLET_ASSIGN(out->module_, hlo::parse_module(text));
  COLLET_TRY(hlo::verify_module(*out->module_));
  hlo::ProgramOptions options;
  options.constants_as_arguments = how.constants == Constants::AsArguments;
  if (how.constants == Constants::Inline) options.inline_limit = SIZE_MAX;
  options.scalars_by_value = how.scalars_by_value;
  COLLET_ASSIGN(out->program_, hlo::write_program(*out->module_, options));
  const hlo::Computation& entry = out->module_->entry_computation();
  for (const hlo::InstrId id : entry.parameters) hlo::append_leaf_shapes((*out->module_)[id].shape, out->inputs_);
  hlo::append_leaf_shapes((*out->module_)[entry.root].shape, out->results_);
  for (const hlo::ConstantArgument& constant : out->program_.constants)
    out->constants_.push_back(out->module_->literal((*out->module_)[constant.instr]));
  return out;
}

std::vector<hlo::ProgramAlias> TestProgram::aliases() const {
  return hlo::entry_aliases(*module_);
}

std::vector<Literal> TestProgram::draw(uint64_t seed) const {
  std::vector<Literal> out;
  for (const Shape& shape : inputs_) {
    Literal value = Literal::zeros(shape);
    const uint64_t own = mix(seed * 1000 + out.size() + 1);
    const Type type = shape.type();
    for (int64_t i = 0; i < value.element_count(); ++i) {
      const auto drawn = static_cast<int64_t>(mix(own + static_cast<uint64_t>(i)) >> 20);
      if (type == Type::PRED) {
        value.set_int(i, drawn & 1);
      } else if (hlo::is_unsigned(type)) {
        value.set_int(i, drawn % 7);
      } else if (hlo::is_integer(type)) {
        value.set_int(i, drawn % 9 - 2);
      } else {
        value.set_double(i, static_cast<double>(drawn % 17 - 8), static_cast<double>(drawn % 5 - 2));
      }
    }
    out.push_back(std::move(value));
  }
  return out;
}

Expected<std::vector<Literal>> TestProgram::evaluate(const std::vector<Literal>& inputs) const {
  COLLET_ASSIGN(const Literal result, hlo::Evaluator(*module_).run(inputs));
  return hlo::flatten(result);
}

Expected<std::vector<std::vector<Literal>>> TestProgram::evaluate_all(const std::vector<std::vector<Literal>>& inputs,
                                                                      uint32_t partitions) const {
  hlo::EvalOptions options;
  options.partitions = partitions;
  options.replicas = static_cast<int64_t>(inputs.size()) / partitions;
  COLLET_ASSIGN(const std::vector<Literal> results, hlo::Evaluator(*module_, options).run_all(inputs));
  std::vector<std::vector<Literal>> out;
  for (const Literal& one : results) out.push_back(hlo::flatten(one));
  return out;
}

std::vector<uint32_t> entry_ops(const collet_program* program) {
  std::vector<uint32_t> out;
  append_ops(program, collet_region_at(program, 0), out);
  return out;
}

Uses::Key use_of(const collet_program* program, const collet_op* op) {
  Uses::Key key{COLLET_QUESTION_OP, collet_op_name(op->opcode), COLLET_TYPE_INVALID};
  if (op->results.count > 0) key.element = collet_value_type(program, op->results.first)->element;
  if (op->opcode == COLLET_OP_CALL) {
    collet_call_attrs attrs;
    collet_read_attributes(program, op, &attrs, sizeof attrs);
    if (attrs.name.count > 0) {
      key.kind = COLLET_QUESTION_PATTERN;
      key.name.assign(collet_string(program, attrs.name), attrs.name.count);
    }
  } else if (op->opcode == COLLET_OP_FUSION && op->regions.count > 0) {
    key.kind = COLLET_QUESTION_FUSION;
    key.name.clear();
    const collet_region* region = collet_region_at(program, op->regions.first);
    for (uint32_t i = 0; i < region->ops.count; ++i) {
      const uint32_t code = collet_op_at(program, region->ops.first + i)->opcode;
      if (code != COLLET_OP_CONSTANT && code != COLLET_OP_TUPLE)
        key.name += (key.name.empty() ? "" : " ") + std::string(collet_op_name(code));
    }
  }
  return key;
}

bool ask(Instance& instance, const collet_program* program, std::span<const uint32_t> ops,
         std::vector<collet_verdict>& verdicts, uint32_t device) {
  Contract& c = instance.contract();
  const std::vector<uint32_t> before(ops.begin(), ops.end());
  // The last verdict is a guard: `supports` must not write to it.
  std::vector<collet_verdict> room(ops.size() + 1);
  std::memset(static_cast<void*>(&room.back()), 0x3c, sizeof(collet_verdict));
  const collet_verdict guard = room.back();
  std::string message;
  const collet_status status = checked_call(
      c, "supports",
      [&](collet_error* error) {
        return instance.table().supports(instance.handle(), device, program, ops.data(),
                                         static_cast<uint32_t>(ops.size()), room.data(), error);
      },
      &message);
  c.check(std::memcmp(&room.back(), &guard, sizeof guard) == 0, Promise::SUPPORTS_COUNT,
          "supports, asked for {} ops, wrote to a further verdict", ops.size());
  c.check(std::equal(ops.begin(), ops.end(), before.begin()), Promise::SUPPORTS_COUNT,
          "supports wrote to the list of ops");
  room.pop_back();
  verdicts = std::move(room);
  if (!c.check(status == COLLET_OK, Promise::SUPPORTS_COUNT, "supports gave status {}: {}", status, message))
    return false;
  for (const collet_verdict& verdict : verdicts) {
    c.check(verdict.answer <= COLLET_EXPAND, Promise::VERDICT_ANSWER, "supports answered {}", verdict.answer);
    c.check(strnlen(verdict.reason, sizeof verdict.reason) < sizeof verdict.reason, Promise::VERDICT_REASON,
            "the reason of a verdict has no end");
    c.check(verdict.reserved == 0, Promise::RESERVED, "supports wrote to a reserved field of a verdict");
    c.note_use(use_of(program, collet_op_at(program, before[static_cast<size_t>(&verdict - verdicts.data())])),
               {.asked = true, .accepted = verdict.answer == COLLET_ACCEPT});
    c.check(verdict.cost_ns >= 0 && verdict.cost_ns < 1e18, Promise::VERDICT, "supports estimates {} ns",
            verdict.cost_ns);
  }
  return true;
}

bool accepts(Instance& instance, const collet_program* program, uint32_t device) {
  if (!instance.contract().plugin().computes()) return false;
  const std::vector<uint32_t> ops = entry_ops(program);
  for (const uint32_t op : ops)
    if (!may_offer(instance, instance.device(device), program, op)) return false;
  std::vector<collet_verdict> verdicts;
  if (ops.empty() || !ask(instance, program, ops, verdicts, device)) return false;
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const collet_verdict& verdict) { return verdict.answer == COLLET_ACCEPT; });
}

Executable& Executable::operator=(Executable&& other) noexcept {
  if (this == &other) return *this;
  reset();
  table_ = other.table_;
  handle_ = std::exchange(other.handle_, nullptr);
  workspace_bytes = other.workspace_bytes;
  workspace_alignment = other.workspace_alignment;
  resident_bytes = other.resident_bytes;
  traffic_bytes = other.traffic_bytes;
  absorbed = std::move(other.absorbed);
  return *this;
}

void Executable::reset() {
  if (handle_ != nullptr) table_->release(handle_);
  handle_ = nullptr;
}

CompileResult compile(Instance& instance, const collet_program* program, const CompileChoice& choice) {
  constexpr uint32_t kGuard = 0x3c3c3c3c;
  Contract& c = instance.contract();
  std::vector<uint32_t> absorbed(program->constants.count + 1, kGuard), named(choice.rejection_room + 1, kGuard);
  collet_compile_options options{};
  options.struct_size = sizeof options;
  options.optimization = 2;
  options.assignment = choice.assignment.empty() ? &choice.device : choice.assignment.data();
  options.participants = choice.assignment.empty() ? 1 : static_cast<uint32_t>(choice.assignment.size());
  options.progress = choice.progress;
  options.user = choice.user;
  collet_executable_info info{};
  info.struct_size = sizeof info;
  info.absorbed_count = program->constants.count;
  info.absorbed = absorbed.data();
  collet_rejection rejection{sizeof(collet_rejection), choice.rejection_room, named.data()};
  collet_backend_executable* handle = nullptr;
  CompileResult out;
  out.status = checked_call(
      c, "compile",
      [&](collet_error* error) {
        return instance.table().compile(instance.handle(), program, &options, &handle, &info, &rejection, error);
      },
      &out.message);
  c.check(absorbed.back() == kGuard, Promise::ABSORBED, "compile wrote beyond the room in `absorbed`");
  c.check(named.back() == kGuard, Promise::REJECTION_ROOM, "compile wrote beyond the room in `ops` of the rejection");
  if (out.status != COLLET_OK) {
    c.check(handle == nullptr, c.out_arguments(), "compile failed and gave an executable");
    c.check(rejection.count <= choice.rejection_room, Promise::REJECTION_ROOM,
            "compile named {} ops where there was room for {}", rejection.count, choice.rejection_room);
    // A backend that does not fill in rejections leaves count and ops unchanged.
    const bool written = named[0] != kGuard;
    const std::vector<uint32_t> ops = entry_ops(program);
    for (uint32_t i = 0; written && i < std::min(rejection.count, choice.rejection_room); ++i) {
      c.check(std::find(ops.begin(), ops.end(), named[i]) != ops.end(), Promise::COMPILE_REJECTS,
              "compile named the op {}, which is none of those that it could be cut at", named[i]);
      out.rejected.push_back(named[i]);
    }
    return out;
  }
  if (!c.check(handle != nullptr, Promise::COMPILE, "compile succeeded without an executable")) {
    out.status = COLLET_INTERNAL;
    return out;
  }
  out.executable = Executable(&instance.table(), handle);
  out.executable.workspace_bytes = info.workspace_bytes;
  out.executable.workspace_alignment = info.workspace_alignment;
  out.executable.resident_bytes = info.resident_bytes;
  out.executable.traffic_bytes = info.traffic_bytes;
  const Device& device = instance.device(*options.assignment);
  const uint64_t capacity = device.spaces[device.default_space].bytes;
  c.check(info.resident_bytes <= (capacity > 0 ? capacity : uint64_t{1} << 50), Promise::RESIDENT,
          "the executable states that it holds {} bytes of a memory of {}", info.resident_bytes, capacity);
  c.check(info.struct_size == sizeof info, Promise::SIZED, "compile changed the struct_size of its info");
  c.check(info.reserved == 0, Promise::RESERVED, "compile wrote to a reserved field of its info");
  c.check(info.workspace_alignment == 0 || std::has_single_bit(info.workspace_alignment), Promise::WORKSPACE_ALIGNMENT,
          "compile asks for a workspace aligned to {}", info.workspace_alignment);
  for (const double estimate : {info.estimated_ns, info.energy_nj})
    c.check(std::isfinite(estimate) && estimate >= 0, Promise::ESTIMATES, "compile estimated {} for an execution",
            estimate);
  c.check(info.workspace_bytes < uint64_t{1} << 40, Promise::WORKSPACE, "compile asks for a workspace of {} bytes",
          info.workspace_bytes);
  const bool written = program->constants.count > 0 && absorbed[0] != kGuard;
  c.check(info.absorbed_count <= program->constants.count, Promise::ABSORBED, "compile absorbed {} of {} constants",
          info.absorbed_count, program->constants.count);
  for (uint32_t i = 0; written && i < std::min(info.absorbed_count, program->constants.count); ++i) {
    c.check(absorbed[i] < program->constants.count, Promise::ABSORBED,
            "compile absorbed constant {}, which is not there", absorbed[i]);
    out.executable.absorbed.push_back(absorbed[i]);
  }
  return out;
}

bool declines_whole(const collet_program* program, const CompileResult& made) {
  return entry_ops(program).size() > 1 &&
         (made.status == COLLET_UNIMPLEMENTED || made.status == COLLET_RESOURCE_EXHAUSTED);
}

bool has_layouts(Instance& instance, const TestProgram& program, const Executable& executable) {
  const auto* table = instance.query<collet_layout_table>("layout");
  if (!table || !table->of) return false;
  const collet_layout none{};
  for (uint32_t result = 0; result < 2; ++result) {
    const size_t count = result ? program.results().size() : program.inputs().size();
    for (uint32_t i = 0; i < count; ++i) {
      collet_layout layout{};
      collet_error error{};
      if (table->of(executable.handle(), result, i, &layout, &error) == COLLET_OK &&
          std::memcmp(&layout, &none, sizeof none) != 0)
        return true;
    }
  }
  return false;
}

namespace {

// Makes the program of `body`, whose constants are arguments if the device does not take them, and asks about it. Returns null
// and the reason if the backend declines an op, and null with a failure on record if the program cannot be made.
std::unique_ptr<TestProgram> offer(Instance& instance, std::string_view body, std::string_view aliases, uint32_t device,
                                   size_t name_bytes, std::string& why) {
  Contract& c = instance.contract();
  if (!c.plugin().computes()) {
    why = "the backend runs no ops";
    return nullptr;
  }
  Expected<std::unique_ptr<TestProgram>> made = TestProgram::make(body, aliases, {.name_bytes = name_bytes});
  if (made.ok() && !takes_constants(instance, (*made)->get(), device))
    made = TestProgram::make(body, aliases, {.constants = Constants::AsArguments, .name_bytes = name_bytes});
  if (!made.ok()) {
    c.fault(made.status());
    return nullptr;
  }
  if (accepts(instance, (*made)->get(), device)) return *std::move(made);
  why = "the backend declines an op of the program";
  return nullptr;
}

}  // namespace

PreparedProgram prepare(Instance& instance, std::string_view body, std::string_view aliases,
                        const CompileChoice& choice, bool or_skip, size_t name_bytes) {
  Contract& c = instance.contract();
  PreparedProgram out;
  const auto skip = [&](std::string why) {
    if (or_skip) c.skip(std::move(why));
    return PreparedProgram{};
  };
  std::string why;
  out.program = offer(instance, body, aliases, choice.device, name_bytes, why);
  if (!out.program) return why.empty() ? PreparedProgram{} : skip(std::move(why));
  const collet_program* program = out.program->get();
  CompileResult compiled = compile(instance, program, choice);
  if (compiled.status != COLLET_OK) {
    if (declines_whole(program, compiled)) return skip("compile declines the program as a whole");
    c.check(false, Promise::SUPPORTS_PROMISE, "supports says yes to each op, and compile gives status {}: {}",
            compiled.status, compiled.message);
    return {};
  }
  if (has_layouts(instance, *out.program, compiled.executable)) return skip("the executable has layouts of its own");
  out.executable = std::move(compiled.executable);
  return out;
}

void for_each_accepted(Instance& instance, const std::function<bool(const Sample&, const PreparedProgram&)>& judge) {
  bool any = false;
  for (const Sample& sample : samples()) {
    const PreparedProgram ready = prepare(instance, sample.body, {}, {}, false);
    if (instance.contract().broken()) return;
    if (!ready) continue;
    any = true;
    if (!judge(sample, ready)) return;
  }
  if (!any) instance.contract().skip("the backend takes none of the programs");
}

void for_each_offered(Instance& instance, const std::function<Visit(const Sample&, const TestProgram&)>& judge) {
  bool any = false;
  for (const Sample& sample : samples()) {
    std::string why;
    const std::unique_ptr<TestProgram> program = offer(instance, sample.body, {}, 0, 0, why);
    if (instance.contract().broken()) return;
    if (!program) continue;
    const Visit visit = judge(sample, *program);
    if (visit == Visit::Stop || instance.contract().broken()) return;
    any |= visit == Visit::Taken;
  }
  if (!any) instance.contract().skip("the backend takes none of the programs");
}

Visit compile_form(Instance& instance, const Sample& sample, const TestProgram& program, const collet_program* form,
                   CompileResult& made) {
  made = compile(instance, form);
  if (made.status == COLLET_OK) return has_layouts(instance, program, made.executable) ? Visit::Declined : Visit::Taken;
  return prepare(instance, sample.body, {}, {}, false) ? Visit::Stop : Visit::Declined;
}

bool runs_right(Instance& instance, const Sample& sample, const TestProgram& program) {
  const CompileResult made = compile(instance, program.get());
  return made.status == COLLET_OK &&
         GuardedLaunch(instance, program, made.executable, {}).run(1, sample.name, sample.bound);
}

std::string accepted_sum(Instance& instance) {
  if (!instance.contract().plugin().computes()) {
    instance.contract().skip("the backend runs no ops");
    return {};
  }
  for (const char* type : {"f32", "s32", "bf16", "f16", "s8", "u8", "f64", "s64"}) {
    for (const char* op : {"add", "multiply", "maximum", "subtract"}) {
      std::string body = fmt::format(
          "ENTRY main {{\n  a = {0}[300] parameter(0)\n  b = {0}[300] parameter(1)\n  ROOT r = {0}[300] {1}(a, "
          "b)\n}}\n",
          type, op);
      const auto program = TestProgram::make(body);
      if (program.ok() && accepts(instance, (*program)->get())) return body;
    }
  }
  instance.contract().skip("the backend takes no addition, product, maximum or difference");
  return {};
}

}  // namespace collet::conformance

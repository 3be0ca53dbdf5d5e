// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <charconv>
#include <string>

#include "hlo/ops/rules.h"
#include "hlo/text/parser_impl.h"

namespace collet::hlo {

void copy_extras_into_record(Module& module, InstrId id) {
  Instruction& instr = module[id];
  if (!instr.extras) return;
  if (instr.op == Op::CUSTOM_CALL && !instr.extras->backend_config.empty()) {
    auto* record = module.arena().make<CustomCallAttrs>(instr.as<CustomCallAttrs>());
    record->config = instr.extras->backend_config;
    instr.attrs = record;
  }
  if (instr.op != Op::CALL || !instr.as<CallAttrs>().is_composite) return;
  auto* record = module.arena().make<CallAttrs>(instr.as<CallAttrs>());
  for (const FrontendAttribute& a : instr.extras->frontend_attributes) {
    if (a.name == "composite.name") record->name = a.value;
    if (a.name == "composite.attributes") record->attributes = a.value;
    if (a.name == "composite.version")
      std::from_chars(a.value.data(), a.value.data() + a.value.size(), record->version);
  }
  instr.attrs = record;
}

}  // namespace collet::hlo

namespace collet::hlo::text {
namespace {

// Maps the text of opcodes to their values, in a hash table with at least twice as many slots.
class OpTable {
 public:
  OpTable() {
    for (int i = 1; i <= kLastOp; ++i) {
      const std::string_view text = op_info(static_cast<Op>(i)).text;
      size_t slot = hash_text(text) & (kSlots - 1);
      while (slots_[slot]) slot = (slot + 1) & (kSlots - 1);
      slots_[slot] = static_cast<uint8_t>(i);
    }
  }
  Op find(std::string_view text) const {
    size_t slot = hash_text(text) & (kSlots - 1);
    for (; slots_[slot]; slot = (slot + 1) & (kSlots - 1)) {
      const Op op = static_cast<Op>(slots_[slot]);
      if (op_info(op).text == text) return op;
    }
    return Op::INVALID;
  }

 private:
  static constexpr size_t kSlots = 1024;
  std::array<uint8_t, kSlots> slots_{};
};

const OpTable& op_table() {
  static const OpTable table;
  return table;
}

// Names of element types in other languages, for suggestions in error messages.
constexpr std::pair<std::string_view, std::string_view> kForeignTypes[] = {
    {"bool", "pred"},   {"boolean", "pred"},  {"i1", "pred"},     {"i4", "s4"},         {"i8", "s8"},
    {"i16", "s16"},     {"i32", "s32"},       {"i64", "s64"},     {"int", "s32"},       {"int4", "s4"},
    {"int8", "s8"},     {"int16", "s16"},     {"int32", "s32"},   {"int64", "s64"},     {"ui8", "u8"},
    {"ui16", "u16"},    {"ui32", "u32"},      {"ui64", "u64"},    {"uint4", "u4"},      {"uint8", "u8"},
    {"uint16", "u16"},  {"uint32", "u32"},    {"uint64", "u64"},  {"half", "f16"},      {"fp16", "f16"},
    {"float16", "f16"}, {"bfloat16", "bf16"}, {"float", "f32"},   {"fp32", "f32"},      {"float32", "f32"},
    {"double", "f64"},  {"fp64", "f64"},      {"float64", "f64"}, {"complex64", "c64"}, {"complex128", "c128"}};

std::string unknown_type(std::string_view text) {
  std::string message = "there is no element type " + quoted(text);
  std::string_view near;
  for (const auto& [foreign, ours] : kForeignTypes)
    if (foreign == text) near = ours;
  if (near.empty()) {
    std::vector<std::string_view> known;
    for (int i = 1; i < 64; ++i)
      if (const std::string_view name = type_info(static_cast<Type>(i)).text; !name.empty()) known.push_back(name);
    near = nearest_spelling(text, known);
  }
  return near.empty() ? message : message + "; did you mean " + quoted(near) + "?";
}

}  // namespace

bool Parser::undefined(std::string_view what, std::string_view name, const NameTable& names, const char* at) {
  std::vector<std::string_view> known;
  names.for_each([&](std::string_view candidate, uint32_t value) {
    if (value != kRefused && known.size() < 5000) known.push_back(candidate);
  });
  std::sort(known.begin(), known.end());
  std::string message = std::string(what) + " " + quoted(name) + " is not defined before its use";
  const std::string_view near = nearest_spelling(name, known);
  if (!near.empty()) message += "; did you mean " + quoted(near) + "?";
  return complain(at, std::move(message));
}

bool Parser::instruction(Scope& inside) {
  const char* begin = tok_.begin;
  const bool marked = is_word(Word::Root);
  if (marked) next();
  const char* name_at = tok_.begin;
  std::string_view text;
  if (!name(text)) return false;
  const bool ok = [&] {
    if (!expect(Tok::Equal, " after the instruction's name")) return false;
    if (marked && inside.root_marked) return complain(begin, "a computation has only one ROOT");
    InstrId id;
    if (!right_hand_side(text, name_at, true, id)) return false;
    if (marked) {
      inside.root_marked = true;
      inside.root = id;
    }
    return true;
  }();
  if (!ok) {
    inside.root_marked |= marked;
    inside.names.insert(text, kRefused);
  }
  return ok;
}

bool Parser::right_hand_side(std::string_view text, const char* name_at, bool attributes_allowed, InstrId& out) {
  if (!enter()) return false;
  if (draft_depth_ == drafts_.size()) drafts_.push_back(std::make_unique<Draft>());
  Draft& draft = *drafts_[draft_depth_++];
  draft.reset();
  const bool ok = [&] {
    if (at_shape() && !shape(draft.shape)) return false;
    if (!opcode(draft)) return false;
    const OpInfo& info = op_info(draft.op);
    if (!draft.shape && (info.has(COLLET_OP_SHAPED) || draft.op == Op::OPT_BARRIER))
      return complain("the shape of " + std::string(info.text) + " must be written before it");
    draft.record = info.record;
    if (draft.record != Record::None) draft.attrs = make_record(draft.record, module_.arena());
    draft.operands_at = tok_.begin;
    switch (draft.op) {
      case Op::PARAMETER:
        if (!parameter_number(draft)) return false;
        break;
      case Op::CONSTANT:
        if (!constant_value(draft)) return false;
        break;
      default:
        if (!operand_list(draft) || !check_operand_count(draft)) return false;
        break;
    }
    return check_before_attributes(draft) && attributes(draft, attributes_allowed) && check_after_attributes(draft) &&
           add_instruction(draft, text, name_at, out);
  }();
  --draft_depth_;
  leave();
  return ok;
}

bool Parser::opcode(Draft& draft) {
  if (!is(Tok::Ident)) return expected("an opcode");
  const std::string_view text = tok_.text;
  draft.op = op_table().find(text);
  if (draft.op != Op::INVALID) {
    next();
    return true;
  }
  constexpr std::pair<std::string_view, Op> kForms[] = {
      {"-start", Op::ASYNC_START}, {"-update", Op::ASYNC_UPDATE}, {"-done", Op::ASYNC_DONE}};
  for (const auto& [suffix, op] : kForms) {
    if (!text.ends_with(suffix)) continue;
    draft.op = op;
    draft.wrapped = op_table().find(text.substr(0, text.size() - suffix.size()));
    if (draft.wrapped == Op::INVALID) break;
    if (op_info(draft.wrapped).family == Family::asynchronous || draft.wrapped == Op::PARAMETER ||
        draft.wrapped == Op::CONSTANT)
      return complain(std::string(op_info(draft.wrapped).text) + " cannot be made asynchronous");
    next();
    return true;
  }
  if (peek() == Tok::LeftSquare) return complain(unknown_type(text));
  std::vector<std::string_view> known;
  for (int i = 1; i <= kLastOp; ++i) known.push_back(op_info(static_cast<Op>(i)).text);
  std::string message = "there is no opcode " + quoted(text);
  const std::string_view near = nearest_spelling(text, known);
  if (!near.empty()) message += "; did you mean " + quoted(near) + "?";
  return complain(std::move(message));
}

bool Parser::parameter_number(Draft& draft) {
  auto* attrs = static_cast<ParameterAttrs*>(draft.attrs);
  if (!expect(Tok::LeftParen, " before the parameter's number") || !integer(attrs->number)) return false;
  const char* at = tok_.begin;
  if (attrs->number < 0) return complain(at, "a parameter's number is not negative");
  return expect(Tok::RightParen, " after the parameter's number");
}

bool Parser::constant_value(Draft& draft) {
  Literal value;
  if (!expect(Tok::LeftParen, " before the constant's value") || !literal(*draft.shape, value) ||
      !expect(Tok::RightParen, " after the constant's value"))
    return false;
  static_cast<ConstantAttrs*>(draft.attrs)->constant = module_.add_literal(std::move(value));
  return true;
}

// ---- operands ----

bool Parser::operand_list(Draft& draft) {
  if (!expect(Tok::LeftParen, " before the operands")) return false;
  if (!is(Tok::RightParen)) do {
      if (!operand(draft)) return false;
    } while (eat(Tok::Comma) && !is(Tok::RightParen));
  return expect(Tok::RightParen, " after the operands");
}

bool Parser::operand(Draft& draft) {
  const char* begin = tok_.begin;
  const Shape* s = nullptr;
  if (at_shape() && !shape(s)) return false;
  if (is(Tok::Ident) || is(Tok::Name)) {
    const std::string_view text = tok_.text;
    const char* at = tok_.begin;
    next();
    if (is(Tok::Comma) || is(Tok::RightParen)) return named_operand(draft, s, text, at);
  } else if (s && single_ && scope_depth_ == 1 && (is(Tok::Comma) || is(Tok::RightParen))) {
    return named_operand(draft, s, {}, begin);
  }
  lexer_.rewind(begin);
  next();
  if (!at_shape() && !is(Tok::Ident)) return expected("an operand: the name of an instruction, or an instruction");
  InstrId id;
  if (!right_hand_side({}, begin, false, id)) return false;
  draft.operands.push_back(id);
  return true;
}

bool Parser::named_operand(Draft& draft, const Shape* s, std::string_view text, const char* at) {
  const uint32_t found = text.empty() ? NameTable::kNone : scope().names.find(text);
  if (found == kRefused) return false;
  if (found == NameTable::kNone) {
    if (!single_ || scope_depth_ != 1) return undefined("instruction", text, scope().names, at);
    if (!s) return complain(at, "operand has no shape, so no parameter can be made of it");
    Scope& inside = scope();
    const auto number = static_cast<int64_t>(inside.parameters.size());
    auto* attrs = module_.make<ParameterAttrs>();
    attrs->number = number;
    const std::string made = text.empty() ? "_" + std::to_string(number) : std::string(text);
    const InstrId id = module_.append(inside.computation, Op::PARAMETER, *s, {}, attrs, {}, made);
    module_[id].line = line_at(at);
    if (!inside.names.insert(module_[id].name, index_of(id)))
      return complain(at, "instruction " + quoted(made) + " is defined twice");
    inside.parameters.emplace_back(number, id);
    inside.parameter_numbers.insert(number);
    draft.operands.push_back(id);
    return true;
  }
  const auto id = static_cast<InstrId>(found);
  if (s && !s->compatible(module_[id].shape))
    return complain(at, "operand is declared as " + s->to_string() + ", but " + quoted(text) + " is " +
                            module_[id].shape.to_string());
  draft.operands.push_back(id);
  return true;
}

// Creates the computation that the short form of asynchronous ops omits: parameters, and the op on them.
bool Parser::wrap_async(Draft& draft) {
  if (draft.wrapped == Op::INVALID) return true;
  const Op op = draft.wrapped;
  const Shape* shape = draft.shape;
  draft.op = op;
  draft.wrapped = Op::INVALID;
  draft.shape = &shape->element(1);
  const bool ok = check_operand_count(draft) && check_before_attributes(draft) && check_after_attributes(draft);
  draft.op = Op::ASYNC_START;
  draft.shape = shape;
  if (!ok) return false;
  const CompId c = module_.add_computation("async_wrapped");
  unnamed_.push_back(c);
  std::vector<InstrId> parameters;
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const std::string text = i ? "async_param." + std::to_string(i) : "async_param";
    const Shape s = module_[draft.operands[i]].shape;
    parameters.push_back(module_.append_parameter(c, static_cast<int64_t>(i), s, text));
  }
  const InstrId root =
      module_.append(c, op, draft.shape->element(1), parameters, draft.attrs, draft.called, "async_op");
  module_[c].root = root;
  for (InstrId id : module_[c].order) module_[id].line = line_at(draft.operands_at);
  module_[c].line = line_at(draft.operands_at);
  draft.record = draft.async_record;
  draft.attrs = draft.async_attrs;
  const std::string_view thread = static_cast<AsyncAttrs*>(draft.attrs)->thread;
  module_[c].execution_thread = thread == "main" ? std::string_view() : thread;
  draft.called.assign(1, c);
  return true;
}

// ---- what follows the operands ----

bool Parser::infer(Draft& draft, Shape& inferred) {
  std::vector<const Shape*> operands;
  operands.reserve(draft.operands.size());
  for (InstrId id : draft.operands) operands.push_back(&module_[id].shape);
  const InferInput input{module_, draft.op, operands, draft.attrs, draft.called, nullptr};
  Expected<Shape> result = infer_shape(input);
  if (!result.ok())
    return complain(draft.operands_at, "the shape of " + std::string(op_info(draft.op).text) +
                                           " is not written and cannot be inferred: " + result.status().message());
  inferred = *std::move(result);
  return charge(draft, inferred);
}

bool Parser::charge(const Draft& draft, const Shape& shape) {
  const Status status = budget_.charge(shape);
  return status.ok() || complain(draft.operands_at, status.message());
}

namespace {

// True for ops whose shapes XLA infers from their operands, ignoring the text; so the shape in the text may be wrong.
bool has_implied_shape(Op op) {
  return op == Op::OUTFEED || op == Op::SEND || op == Op::SEND_DONE || op == Op::RECV || op == Op::RECV_DONE ||
         op == Op::AFTER_ALL || op == Op::ADD_DEPENDENCY;
}

const Shape* implied_shape(const Module& module, const Draft& draft, Shape& keep) {
  std::vector<const Shape*> operands;
  operands.reserve(draft.operands.size());
  for (InstrId id : draft.operands) operands.push_back(&module[id].shape);
  Expected<Shape> implied = infer_shape({module, draft.op, operands, draft.attrs, draft.called, draft.shape});
  if (!implied.ok() || implied->compatible(*draft.shape)) return draft.shape;
  keep = *std::move(implied);
  return &keep;
}

}  // namespace

// Returns a name for an instruction without one: "add.anon", "add.anon.1", ... unique in the module.
std::string_view Parser::anonymous_name(Op op) {
  const std::string stem = std::string(op_info(op).text) + ".anon";
  std::string text;
  do {
    const uint32_t n = anonymous_[static_cast<size_t>(op)]++;
    text = n ? stem + "." + std::to_string(n) : stem;
  } while (scope().names.find(text) != NameTable::kNone);
  return module_.arena().string(text);
}

bool Parser::add_instruction(Draft& draft, std::string_view text, const char* name_at, InstrId& out) {
  Shape inferred;
  if (!draft.shape && !infer(draft, inferred)) return false;
  if (draft.shape && has_implied_shape(draft.op)) {
    draft.shape = implied_shape(module_, draft, inferred);
    if (!charge(draft, *draft.shape)) return false;
  }
  if (text.empty()) text = anonymous_name(draft.op);
  if ((text[0] == '_' || text.size() < 15) && is_reserved_name(text))
    return complain(name_at, "an instruction may not be called " + quoted(text));
  Scope& inside = scope();
  out = module_.append(inside.computation, draft.op, draft.shape ? *draft.shape : inferred, draft.operands, draft.attrs,
                       draft.called, text);
  Instruction& instr = module_[out];
  instr.line = line_at(name_at);
  if (draft.has_extras) {
    instr.extras = module_.arena().make<Extras>(draft.extras);
    copy_extras_into_record(module_, out);
  }
  if (!inside.names.insert(text, index_of(out)))
    return complain(name_at, "instruction " + quoted(text) + " is defined twice");
  if (draft.op == Op::PARAMETER) {
    const int64_t number = instr.as<ParameterAttrs>().number;
    if (!inside.parameter_numbers.insert(number).second)
      return complain(name_at, "parameter number " + std::to_string(number) + " is given twice");
    inside.parameters.emplace_back(number, out);
  } else if (draft.op == Op::ASYNC_START) {
    if (!async_caller_.emplace(index_of(draft.called[0]), out).second)
      return complain(
          name_at, "computation " + quoted(module_[draft.called[0]].name) + " is called by more than one async-start");
  } else if (draft.op == Op::ASYNC_UPDATE) {
    const Instruction& before = module_[draft.operands[0]];
    async_start_[index_of(out)] =
        before.op == Op::ASYNC_START ? draft.operands[0] : async_start_.at(index_of(draft.operands[0]));
  }
  if ((draft.seen_common >> static_cast<int>(Common::ParameterReplication) & 1) &&
      static_cast<int64_t>(draft.extras.parameter_replication.size()) != instr.shape.leaf_count())
    return complain("the shape has " + std::to_string(instr.shape.leaf_count()) +
                    " leaves, but parameter_replication has " +
                    std::to_string(draft.extras.parameter_replication.size()) + " entries");
  return true;
}

}  // namespace collet::hlo::text

// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "hlo/ops/rules.h"
#include "hlo/text/parser_impl.h"

namespace collet::hlo::text {
namespace {

bool is_async_shape(const Shape& shape) {
  return shape.is_tuple() && shape.elements().size() >= 2 && shape.element(0).is_tuple();
}

bool is_async_link(Op op) {
  return op == Op::ASYNC_START || op == Op::ASYNC_UPDATE;
}

}  // namespace

bool Parser::check_operand_count(const Draft& draft) {
  const OpInfo& info = op_info(draft.op);
  const auto n = static_cast<int>(draft.operands.size());
  if (n >= info.min_operands && (info.max_operands < 0 || n <= info.max_operands)) return true;
  std::string wanted = std::to_string(info.min_operands);
  if (info.max_operands < 0)
    wanted = "at least " + wanted;
  else if (info.max_operands != info.min_operands)
    wanted += " to " + std::to_string(info.max_operands);
  return complain(draft.operands_at, std::string(info.text) + " expects " + wanted + " operand" +
                                         (wanted == "1" || wanted == "at least 1" ? "" : "s") + ", but has " +
                                         std::to_string(n));
}

// ---- rules of single ops that hold before and after the attributes ----

bool Parser::check_before_attributes(Draft& draft) {
  switch (draft.op) {
    case Op::ASYNC_START:
      if (!is_async_shape(*draft.shape))
        return complain("the shape of async-start has the form ((operands), results, state...)");
      if (draft.wrapped != Op::INVALID) {
        draft.async_record = draft.record;
        draft.async_attrs = draft.attrs;
        draft.record = op_info(draft.wrapped).record;
        draft.attrs = draft.record == Record::None ? nullptr : make_record(draft.record, module_.arena());
      }
      return true;
    case Op::ASYNC_UPDATE:
    case Op::ASYNC_DONE:
      return check_async_link(draft);
    case Op::TUPLE:
      if (draft.shape && (!draft.shape->is_tuple() || draft.shape->elements().size() != draft.operands.size()))
        return complain(draft.operands_at, "a tuple of shape " + draft.shape->to_string() + " has " +
                                               std::to_string(draft.operands.size()) + " operands");
      return true;
    case Op::CONDITIONAL: {
      const Shape& selector = module_[draft.operands[0]].shape;
      if (!selector.is_scalar() || (selector.type() != Type::PRED && selector.type() != Type::S32))
        return complain("the first operand of conditional is a scalar of type pred or s32, not " +
                        selector.to_string());
      return true;
    }
    default:
      return true;
  }
}

bool Parser::check_async_link(Draft& draft) {
  const std::string text(op_info(draft.op).text);
  const Instruction& before = module_[draft.operands[0]];
  if (!is_async_shape(before.shape))
    return complain(text + " expects one operand of the form ((operands), results, state...)");
  if (draft.op == Op::ASYNC_UPDATE && !is_async_shape(*draft.shape))
    return complain("the shape of async-update has the form ((operands), results, state...)");
  if (!is_async_link(before.op)) return complain(text + " expects the result of an async-start or async-update");
  if (draft.op == Op::ASYNC_UPDATE && !draft.shape->compatible(before.shape))
    return complain("the shape of async-update, " + draft.shape->to_string() + ", is that of its operand, " +
                    before.shape.to_string());
  if (draft.wrapped == Op::INVALID) return true;
  const Op wrapped = module_[module_[before.called[0]].root].op;
  if (wrapped == draft.wrapped) return true;
  return complain("the async computation does " + std::string(op_info(wrapped).text) + ", not " +
                  std::string(op_info(draft.wrapped).text));
}

bool Parser::check_after_attributes(Draft& draft) {
  const size_t n = draft.operands.size();
  const auto count = [&](const char* rule) {
    return complain(draft.operands_at, std::string(op_info(draft.op).text) + " expects " + rule + ", but has " +
                                           std::to_string(n) + " operands");
  };
  const auto rank_of = [&](size_t i) { return static_cast<size_t>(module_[draft.operands[i]].shape.rank()); };
  switch (draft.op) {
    case Op::REDUCE:
    case Op::REDUCE_WINDOW:
      return n % 2 == 0 || count("an even number of operands");
    case Op::SCATTER:
      return n % 2 == 1 || count("an odd number of operands");
    case Op::DYNAMIC_SLICE:
      return n == 1 + rank_of(0) || (n == 2 && rank_of(1) == 1) || count("an operand and one index per dimension");
    case Op::DYNAMIC_UPDATE_SLICE:
      return n == 2 + rank_of(0) || (n == 3 && rank_of(2) == 1) ||
             count("an operand, an update and one index per dimension");
    case Op::CONDITIONAL:
      return n == draft.called.size() + 1 ||
             complain(draft.operands_at, "conditional has " + std::to_string(draft.called.size()) + " branches and " +
                                             std::to_string(n - 1) + " operands for them");
    case Op::INFEED:
      return (draft.shape->is_tuple() && !draft.shape->elements().empty()) ||
             complain("the shape of infeed is a tuple: (data, token[])");
    case Op::RECV:
      return (draft.shape->is_tuple() && !draft.shape->elements().empty()) ||
             complain("the shape of recv is a tuple: (data, u32[], token[])");
    case Op::SEND_DONE:
    case Op::RECV_DONE: {
      const Instruction& before = module_[draft.operands[0]];
      if (before.op != Op::SEND && before.op != Op::RECV) return true;
      return before.as<ChannelAttrs>().channel == static_cast<ChannelAttrs*>(draft.attrs)->channel ||
             complain("channel_id differs from that of the operand");
    }
    case Op::BROADCAST:
      return (draft.seen & 1) || rank_of(0) == 0 ||
             complain("attribute 'dimensions' of broadcast is missing; only a scalar needs none");
    case Op::ALL_REDUCE:
    case Op::ALL_REDUCE_START: {
      const auto* attrs = static_cast<CollectiveAttrs*>(draft.attrs);
      return !attrs->global_ids || attrs->channel || draft.extras.zero_channel || draft.seen_mode ||
             complain(draft.operands_at, "use_global_device_ids=true needs a channel_id");
    }
    case Op::REDUCE_SCATTER: {
      const auto* attrs = static_cast<CollectiveDimAttrs*>(draft.attrs);
      return !attrs->global_ids || attrs->channel || draft.extras.zero_channel || draft.seen_mode ||
             complain(draft.operands_at, "use_global_device_ids=true needs a channel_id");
    }
    case Op::ALL_TO_ALL:
    case Op::RAGGED_ALL_TO_ALL: {
      const auto* attrs = static_cast<AllToAllAttrs*>(draft.attrs);
      return attrs->dimension.size() <= 1 || complain("attribute 'dimensions' holds one dimension");
    }
    case Op::COLLECTIVE_PERMUTE:
    case Op::COLLECTIVE_PERMUTE_START:
      return static_cast<CollectivePermuteAttrs*>(draft.attrs)->slice_sizes.empty() || n == 4 ||
             count("four operands with slice_sizes");
    case Op::CUSTOM_CALL:
      return check_custom_call(draft);
    case Op::ASYNC_START:
      return wrap_async(draft);
    case Op::ASYNC_UPDATE:
    case Op::ASYNC_DONE: {
      const auto* attrs = static_cast<AsyncAttrs*>(draft.attrs);
      const Instruction& before = module_[draft.operands[0]];
      const InstrId start =
          before.op == Op::ASYNC_START ? draft.operands[0] : async_start_.at(index_of(draft.operands[0]));
      std::string_view thread = module_[start].as<AsyncAttrs>().thread;
      if (thread.empty()) thread = "main";
      if (!attrs->thread.empty() && attrs->thread != thread)
        return complain("async_execution_thread is " + quoted(thread) + ", not " + quoted(attrs->thread));
      const CompId wrapped = module_[start].called[0];
      if (!draft.called.empty() && draft.called[0] != wrapped)
        return complain("the async computation is " + quoted(module_[wrapped].name) + ", not " +
                        quoted(module_[draft.called[0]].name));
      draft.called.assign(1, wrapped);
      return true;
    }
    default:
      return true;
  }
}

bool Parser::check_custom_call(const Draft& draft) {
  auto* attrs = static_cast<CustomCallAttrs*>(draft.attrs);
  bool has_constraints = false;
  size_t index = 0;
  for (const FieldInfo& f : record_fields(draft.record)) {
    if (f.text == "operand_layout_constraints") has_constraints = draft.seen >> index & 1;
    ++index;
  }
  if (!has_constraints) return true;
  attrs->constrains_layouts = true;
  if (attrs->operand_layouts.size() != draft.operands.size())
    return complain("custom-call has " + std::to_string(draft.operands.size()) + " operands and " +
                    std::to_string(attrs->operand_layouts.size()) + " operand layout constraints");
  for (size_t i = 0; i < draft.operands.size(); ++i) {
    const Shape& operand = module_[draft.operands[i]].shape;
    if (!attrs->operand_layouts[i]->compatible(operand))
      return complain("operand layout constraint " + attrs->operand_layouts[i]->to_string(true) +
                      " does not fit operand " + std::to_string(i) + ", which is " + operand.to_string());
  }
  return true;
}

}  // namespace collet::hlo::text

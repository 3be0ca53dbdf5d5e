// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>

#include "hlo/verify/context.h"

namespace collet::hlo::verify {
namespace {

// Which ops may use an asynchronous op's result, and from which ops it may take its operand. INVALID: no such rule.
struct PairRule {
  Op op;
  std::array<Op, 2> users;
  std::array<Op, 2> operands;
};
constexpr Op kAny = Op::INVALID;
constexpr PairRule kRules[] = {
    {Op::ASYNC_START, {Op::ASYNC_UPDATE, Op::ASYNC_DONE}, {kAny, kAny}},
    {Op::ASYNC_UPDATE, {Op::ASYNC_UPDATE, Op::ASYNC_DONE}, {Op::ASYNC_START, Op::ASYNC_UPDATE}},
    {Op::ASYNC_DONE, {kAny, kAny}, {Op::ASYNC_START, Op::ASYNC_UPDATE}},
    {Op::ALL_REDUCE_START, {Op::ALL_REDUCE_DONE, Op::ALL_REDUCE_DONE}, {kAny, kAny}},
    {Op::ALL_REDUCE_DONE, {kAny, kAny}, {Op::ALL_REDUCE_START, Op::ALL_REDUCE_START}},
    {Op::COPY_START, {Op::COPY_DONE, Op::COPY_DONE}, {kAny, kAny}},
    {Op::COPY_DONE, {kAny, kAny}, {Op::COPY_START, Op::COPY_START}},
    {Op::COLLECTIVE_PERMUTE_START, {Op::COLLECTIVE_PERMUTE_DONE, Op::COLLECTIVE_PERMUTE_DONE}, {kAny, kAny}},
    {Op::COLLECTIVE_PERMUTE_DONE, {kAny, kAny}, {Op::COLLECTIVE_PERMUTE_START, Op::COLLECTIVE_PERMUTE_START}},
    {Op::SEND, {Op::SEND_DONE, Op::TUPLE}, {kAny, kAny}},
    {Op::SEND_DONE, {kAny, kAny}, {Op::SEND, Op::GET_TUPLE_ELEMENT}},
    {Op::RECV, {Op::RECV_DONE, Op::TUPLE}, {kAny, kAny}},
    {Op::RECV_DONE, {kAny, kAny}, {Op::RECV, Op::GET_TUPLE_ELEMENT}},
};

const PairRule* rule_of(Op op) {
  const auto* it = std::find_if(std::begin(kRules), std::end(kRules), [op](const PairRule& r) { return r.op == op; });
  return it == std::end(kRules) ? nullptr : it;
}

bool allows(const std::array<Op, 2>& ops, Op op) {
  return ops[0] == op || ops[1] == op;
}

std::string either(const std::array<Op, 2>& ops) {
  if (ops[0] == ops[1]) return std::string(op_info(ops[0]).text);
  return concat(op_info(ops[0]).text, " or ", op_info(ops[1]).text);
}

class PairVerifier {
 public:
  explicit PairVerifier(Context& context) : context_(context), module_(context.module) {}

  void run() {
    find_async_roots();
    for (CompId c : module_.computations()) check_computation(c);
    check_host_channels();
  }

 private:
  // A send or receive that is the root of an asynchronous computation is finished outside.
  void find_async_roots() {
    for (CompId c : module_.computations())
      for (InstrId id : module_[c].order)
        if (module_[id].op == Op::ASYNC_START)
          for (CompId called : module_[id].called) async_roots_.push_back(module_[called].root);
  }

  void check_computation(CompId c) {
    const auto& order = module_[c].order;
    if (std::none_of(order.begin(), order.end(), [&](InstrId id) { return rule_of(module_[id].op); })) return;
    const UserMap users(module_, c);
    for (InstrId id : order) {
      if (context_.full()) return;
      const PairRule* rule = rule_of(module_[id].op);
      if (rule) check(*rule, id, users);
    }
  }

  void check(const PairRule& rule, InstrId id, const UserMap& map) {
    const Instruction& instr = module_[id];
    if (rule.operands[0] != kAny) check_operand(rule, instr);
    if (rule.users[0] == kAny) return;
    const bool transfers = instr.op == Op::SEND || instr.op == Op::RECV;
    if (transfers && instr.as<ChannelAttrs>().host_transfer && instr.as<ChannelAttrs>().channel)
      hosts_[instr.as<ChannelAttrs>().channel].push_back(id);
    if (transfers && std::find(async_roots_.begin(), async_roots_.end(), id) != async_roots_.end()) return;
    std::vector<InstrId> users(map.users(id).begin(), map.users(id).end());
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    if (users.size() != 1)
      return context_.complain(
          instr, concat(op_info(instr.op).text, ": needs one user, ", either(rule.users), ", but has ", users.size()));
    const Instruction& user = module_[users[0]];
    if (!allows(rule.users, user.op))
      return context_.complain(instr, concat(op_info(instr.op).text, ": its user must be ", either(rule.users),
                                             ", but is ", op_info(user.op).text));
    if (transfers && user.op != Op::TUPLE) check_channel(instr, user);
  }

  void check_operand(const PairRule& rule, const Instruction& instr) {
    const Instruction& operand = module_[instr.operand(0)];
    if (!allows(rule.operands, operand.op))
      return context_.complain(instr, concat(op_info(instr.op).text, ": its operand must be ", either(rule.operands),
                                             ", but is ", op_info(operand.op).text));
    const bool chain = instr.op == Op::ASYNC_UPDATE || instr.op == Op::ASYNC_DONE;
    if (chain && !instr.called.empty() && !operand.called.empty() &&
        !same_computation(module_, instr.called[0], operand.called[0]))
      context_.complain(instr, concat(op_info(instr.op).text, ": runs ", module_[instr.called[0]].name,
                                      ", but its operand runs ", module_[operand.called[0]].name));
  }

  void check_channel(const Instruction& instr, const Instruction& done) {
    const auto& a = instr.as<ChannelAttrs>();
    const auto& b = done.as<ChannelAttrs>();
    if (a.channel == 0) return;
    if (a.channel != b.channel)
      context_.complain(done, concat(op_info(done.op).text, ": channel_id is ", b.channel, ", but that of ", instr.name,
                                     " is ", a.channel));
    if (a.host_transfer != b.host_transfer)
      context_.complain(done, concat(op_info(done.op).text, ": is_host_transfer differs from that of ", instr.name));
  }

  static bool same_frontend_attributes(const Instruction& a, const Instruction& b) {
    const auto list = [](const Instruction& i) {
      std::vector<std::pair<std::string_view, std::string_view>> out;
      if (i.extras)
        for (const FrontendAttribute& f : i.extras->frontend_attributes) out.emplace_back(f.name, f.value);
      std::sort(out.begin(), out.end());
      return out;
    };
    return list(a) == list(b);
  }

  // Checks that a channel to the host is used by one transfer only in the whole module.
  void check_host_channels() {
    for (const auto& [channel, ids] : hosts_) {
      const Instruction& first = module_[ids[0]];
      for (InstrId id : ids) {
        const Instruction& other = module_[id];
        bool same = first.op == other.op && first.shape.same_without_layout(other.shape) &&
                    first.operands.size() == other.operands.size();
        for (size_t i = 0; same && i < first.operands.size(); ++i)
          same = module_[first.operand(i)].shape.same_without_layout(module_[other.operand(i)].shape);
        if (same && same_frontend_attributes(first, other)) continue;
        context_.complain(other, concat(op_info(other.op).text, ": host transfers on channel ", channel,
                                        " must be alike, but this one differs from ", first.name));
        break;
      }
    }
  }

  Context& context_;
  const Module& module_;
  std::vector<InstrId> async_roots_;
  std::map<int64_t, std::vector<InstrId>> hosts_;
};

}  // namespace

void verify_pairs(Context& context) {
  PairVerifier(context).run();
}

}  // namespace collet::hlo::verify

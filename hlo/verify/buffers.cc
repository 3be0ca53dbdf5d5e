// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>

#include "hlo/verify/context.h"

namespace collet::hlo::verify {
namespace {

using Index = std::vector<int64_t>;

bool has_buffer(const Shape& shape) {
  if (shape.is_buffer()) return true;
  return shape.is_tuple() && std::any_of(shape.elements().begin(), shape.elements().end(), has_buffer);
}

// Finds the indices of the buffers in `shape`.
void find_buffers(const Shape& shape, Index& at, std::vector<Index>& out) {
  if (shape.is_buffer()) return out.push_back(at);
  if (!shape.is_tuple()) return;
  for (size_t i = 0; i < shape.elements().size(); ++i) {
    at.push_back(static_cast<int64_t>(i));
    find_buffers(shape.element(i), at, out);
    at.pop_back();
  }
}
std::vector<Index> buffers_of(const Shape& shape) {
  std::vector<Index> out;
  Index at;
  find_buffers(shape, at, out);
  return out;
}

// Checks the rules for values of type b(...), the buffers of a program. A buffer is an array in memory that instructions
// overwrite: custom calls whose result is one of their operands, called computations, loops. Each buffer may have one
// writer at most, counted along the tuples that hold it, so that no instruction reads elements that another one has
// replaced. Pin makes a buffer of an array, and Unpin an array of a buffer. Other ops may not have buffers.
class BufferVerifier {
 public:
  explicit BufferVerifier(Context& context) : context_(context), module_(context.module) {}

  void run() {
    if (!any()) return;
    loop_body_.assign(module_.computation_limit(), false);
    for (CompId c : module_.computations())
      for (InstrId id : module_[c].order)
        if (module_[id].op == Op::WHILE)
          for (CompId called : module_[id].called) loop_body_[index_of(called)] = true;
    for (CompId c : module_.computations()) {
      const UserMap users(module_, c);
      users_ = &users;
      for (InstrId id : module_[c].order) {
        if (context_.full()) return;
        check(c, id);
      }
    }
  }

 private:
  bool any() const {
    for (CompId c : module_.computations())
      for (InstrId id : module_[c].order)
        if (has_buffer(module_[id].shape)) return true;
    return false;
  }

  void check(CompId c, InstrId id) {
    const Instruction& instr = module_[id];
    switch (instr.op) {
      case Op::CUSTOM_CALL:
        return check_custom_call(id);
      case Op::PARAMETER:
        if (c == module_.entry()) check_none(instr);
        return check_writers(id);
      case Op::WHILE:
        return check_writers(id);
      case Op::GET_TUPLE_ELEMENT:
      case Op::TUPLE:
        return;
      default:
        return check_none(instr);
    }
  }

  void check_none(const Instruction& instr) {
    bool found = has_buffer(instr.shape);
    for (InstrId o : instr.operands) found |= has_buffer(module_[o].shape);
    if (found) context_.complain(instr, concat(op_info(instr.op).text, ": buffers are not allowed here"));
  }

  void check_writers(InstrId id) {
    for (const Index& at : buffers_of(module_[id].shape)) check_one_writer(id, at);
  }

  void check_one_writer(InstrId id, const Index& at) {
    if (count_writers(id, at) > 1)
      context_.complain(module_[id],
                        concat("the buffer at ", std::span<const int64_t>(at), " has more than one writer"));
  }

  int64_t count_writers(InstrId id, const Index& at) const {
    int64_t writers = 0;
    std::vector<InstrId> users(users_->users(id).begin(), users_->users(id).end());
    std::sort(users.begin(), users.end());
    users.erase(std::unique(users.begin(), users.end()), users.end());
    for (InstrId user : users) writers += writers_through(id, at, user);
    return writers;
  }

  // Counts the writers of buffer `at` of `id` that `user_id` is or leads to. Instructions with computations count as
  // writers, whatever those do. So does the result of a loop's body or condition, because the next iteration takes it.
  int64_t writers_through(InstrId id, const Index& at, InstrId user_id) const {
    const Instruction& user = module_[user_id];
    switch (user.op) {
      case Op::CALL:
      case Op::FUSION:
      case Op::CUSTOM_CALL:
      case Op::WHILE:
      case Op::CONDITIONAL:
        return 1;
      case Op::GET_TUPLE_ELEMENT:
        if (at.empty() || user.as<TupleIndexAttrs>().index != at[0]) return 0;
        return count_writers(user_id, Index(at.begin() + 1, at.end()));
      case Op::TUPLE: {
        if (module_[user.parent].root == user_id) return loop_body_[index_of(user.parent)] ? 1 : 0;
        const auto* place = std::find(user.operands.begin(), user.operands.end(), id);
        Index inside{place - user.operands.begin()};
        inside.insert(inside.end(), at.begin(), at.end());
        return count_writers(user_id, inside);
      }
      default:
        return 0;
    }
  }

  void fail(InstrId id, std::string_view text) {
    context_.complain(module_[id], concat("custom-call ", module_[id].as<CustomCallAttrs>().target, ": ", text));
  }

  void check_custom_call(InstrId id) {
    const Instruction& instr = module_[id];
    const auto& a = instr.as<CustomCallAttrs>();
    if (a.target == "Pin" || a.target == "Unpin") return check_pin(id, a.target == "Pin");
    if (a.target == "CreateBuffer") {
      if (!instr.operands.empty()) return fail(id, "takes no operand");
      if (!instr.shape.is_buffer()) return fail(id, "must give one buffer");
      return check_one_writer(id, {});
    }
    // Each operand that is a buffer must be exactly one result, and each result that is a buffer exactly one operand.
    for (size_t i = 0; i < instr.operands.size(); ++i)
      for (const Index& at : buffers_of(module_[instr.operand(i)].shape)) {
        const auto uses = std::count_if(a.aliasing.begin(), a.aliasing.end(), [&](const AliasEntry& e) {
          return e.operand == static_cast<int64_t>(i) &&
                 std::equal(at.begin(), at.end(), e.operand_index.begin(), e.operand_index.end());
        });
        if (uses != 1)
          return fail(id, concat("the buffer in operand ", i, " must come out once, but does ", uses, " times"));
      }
    for (const Index& at : buffers_of(instr.shape)) {
      const auto uses = std::count_if(a.aliasing.begin(), a.aliasing.end(), [&](const AliasEntry& e) {
        return std::equal(at.begin(), at.end(), e.output_index.begin(), e.output_index.end());
      });
      if (uses != 1)
        return fail(id, concat("the buffer in the result at ", std::span<const int64_t>(at),
                               " must go in once, but does ", uses, " times"));
      check_one_writer(id, at);
    }
  }

  void check_pin(InstrId id, bool pin) {
    const Instruction& instr = module_[id];
    if (instr.operands.size() != 1) return fail(id, "takes one operand");
    const Shape& operand = module_[instr.operand(0)].shape;
    const Shape& plain = pin ? operand : instr.shape;
    const Shape& buffer = pin ? instr.shape : operand;
    if (!buffer.is_buffer() || !plain.is_array())
      return fail(id, pin ? "makes a buffer from an array" : "makes an array from a buffer");
    if (!buffer.element(0).same_without_layout(plain)) return fail(id, concat("joins ", plain, " and ", buffer));
    if (instr.as<CustomCallAttrs>().aliasing.size() != 1) return fail(id, "needs one output_to_operand_aliasing");
    if (pin) check_one_writer(id, {});
  }

  Context& context_;
  const Module& module_;
  std::vector<bool> loop_body_;
  const UserMap* users_ = nullptr;
};

}  // namespace

void verify_buffers(Context& context) {
  BufferVerifier(context).run();
}

}  // namespace collet::hlo::verify

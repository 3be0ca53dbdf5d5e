// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "hlo/ops/collective.h"
#include "hlo/ops/eval/body.h"
#include "hlo/ops/eval/families.h"
#include "hlo/ops/eval/strided.h"

namespace collet::hlo {
namespace {

using namespace eval;

using Everyone = std::vector<std::vector<Literal>>;  // operands by member

/// The members of a participant's group, and its index among them.
struct Members {
  Ints ids;  // replica * partitions + partition
  size_t self = 0;
};

class Collective {
 public:
  explicit Collective(const EvalInput& in)
      : in_(in),
        context_(in.context),
        partitions_(in.context.partition_count()),
        me_(in.context.replica() * partitions_ + in.context.partition()) {}

  Expected<Literal> run() {
    switch (in_.instr.op) {
      case Op::ALL_REDUCE:
        return all_reduce(in_.instr.as<CollectiveAttrs>());
      case Op::ALL_REDUCE_START:
        return all_reduce(in_.instr.as<CollectiveAttrs>());
      case Op::REDUCE_SCATTER:
        return reduce_scatter(in_.instr.as<CollectiveDimAttrs>());
      case Op::ALL_GATHER:
        return all_gather(in_.instr.as<CollectiveDimAttrs>());
      case Op::ALL_GATHER_START: {
        const std::vector<Literal> operands(in_.operands.begin(), in_.operands.end());
        COLLET_ASSIGN(Literal result, all_gather(in_.instr.as<CollectiveDimAttrs>()));
        return started(operands, std::move(result));
      }
      case Op::ALL_TO_ALL:
        return all_to_all(in_.instr.as<AllToAllAttrs>());
      case Op::RAGGED_ALL_TO_ALL:
        return ragged(in_.instr.as<AllToAllAttrs>());
      case Op::COLLECTIVE_BROADCAST:
        return broadcast(in_.instr.as<CollectiveAttrs>());
      case Op::COLLECTIVE_PERMUTE:
        return permute(in_.instr.as<CollectivePermuteAttrs>());
      case Op::COLLECTIVE_PERMUTE_START: {
        const std::vector<Literal> operands(in_.operands.begin(), in_.operands.end());
        COLLET_ASSIGN(Literal result, permute(in_.instr.as<CollectivePermuteAttrs>()));
        return started(operands, std::move(result));
      }
      case Op::ALL_REDUCE_DONE:
        return in_.operand(0);
      default:  // all-gather-done, collective-permute-done
        if (in_.operand(0).elements().size() < 2) return invalid_argument("a done op needs what its start gave");
        return in_.operand(0).element(1);
    }
  }

 private:
  /// Returns (operands, result, states...) in the shape of the start instruction.
  Literal started(const std::vector<Literal>& operands, Literal result) const {
    std::vector<Literal> parts;
    parts.push_back(operands.size() == 1 && !in_.instr.shape.element(0).is_tuple() ? operands[0]
                                                                                   : Literal::tuple(operands));
    parts.push_back(std::move(result));
    for (size_t i = 2; i < in_.instr.shape.elements().size(); ++i)
      parts.push_back(Literal::zeros(in_.instr.shape.element(i)));
    return Literal::tuple(std::move(parts));
  }

  Literal as_result(std::vector<Literal> results) const {
    const bool one =
        results.size() == 1 &&
        !(in_.instr.shape.is_tuple() && in_.instr.op != Op::ALL_GATHER_START &&
          in_.instr.op != Op::COLLECTIVE_PERMUTE_START) &&
        !(in_.instr.shape.is_tuple() && in_.instr.shape.elements().size() > 1 && in_.instr.shape.element(1).is_tuple());
    return one ? std::move(results[0]) : Literal::tuple(std::move(results));
  }

  int64_t id(int64_t replica, int64_t partition) const { return replica * partitions_ + partition; }

  /// True if one participant runs alone. It may run modules that were written for several; the others then contribute
  /// nothing.
  bool alone() const { return context_.replica_count() * partitions_ == 1; }

  /// Appends the participants that the id `number` of a group names.
  void add(GroupMode mode, int64_t number, Ints& ids) const {
    switch (mode) {
      case GroupMode::CrossReplica:
        ids.push_back(id(number, context_.partition()));
        break;
      case GroupMode::CrossPartition:
        ids.push_back(id(context_.replica(), number));
        break;
      case GroupMode::CrossReplicaAndPartition:
        for (int64_t p = 0; p < partitions_; ++p) ids.push_back(id(number, p));
        break;
      case GroupMode::Flattened:
        ids.push_back(number);
        break;
    }
  }

  /// Returns all participants that `mode` may name.
  Ints pool(GroupMode mode) const {
    const int64_t count = mode == GroupMode::Flattened        ? context_.replica_count() * partitions_
                          : mode == GroupMode::CrossPartition ? partitions_
                                                              : context_.replica_count();
    Ints ids;
    for (int64_t n = 0; n < count; ++n) add(mode, n, ids);
    return ids;
  }

  Expected<Members> members(const Groups& groups, int64_t channel, std::optional<bool> global_ids) const {
    COLLET_ASSIGN(const GroupMode mode, group_mode(in_.instr.op, channel != 0, global_ids));
    Members out;
    if (groups.empty()) {
      out.ids = pool(mode);
    } else {
      for (const Dims& group : groups.groups) {
        Ints ids;
        for (int64_t number : group) add(mode, number, ids);
        if (std::find(ids.begin(), ids.end(), me_) == ids.end()) continue;
        out.ids = std::move(ids);
        break;
      }
    }
    if (alone()) return Members{{me_}, 0};
    const auto self = std::find(out.ids.begin(), out.ids.end(), me_);
    if (self == out.ids.end()) return Members{{me_}, 0};  // a participant in no group is alone
    out.self = static_cast<size_t>(self - out.ids.begin());
    return out;
  }

  Expected<Everyone> exchange(const Members& members) {
    if (members.ids.size() == 1) return Everyone{{in_.operands.begin(), in_.operands.end()}};
    COLLET_ASSIGN(Everyone all, context_.exchange(in_.instr, members.ids, in_.operands));
    for (const auto& operands : all)
      if (operands.size() != in_.operand_count()) return internal_error("an exchange of other operands");
    return all;
  }

  /// Combines operand `k` of all members in the group's order, in the element type of the result.
  Expected<Literal> folded(const Everyone& all, size_t k) {
    const Shape& stated = in_.instr.shape.is_tuple() ? in_.instr.shape.element(k) : in_.instr.shape;
    const Literal& first = all[0][k];
    const Codec &from = codec(first.type()), &to = codec(stated.type());
    if (!from.load || !to.store || (all.size() == 1 && stated.type() == first.type())) return first;
    Body body(in_.module, in_.instr.called[0], context_);
    if (body.argument_count() != 2 || body.result_count() != 1)
      return invalid_argument("the reduction of a collective takes two scalars");
    Literal sum = Literal::uninitialized(first.shape().with_type(stated.type()));
    uint8_t* bytes = sum.mutable_bytes();
    for (int64_t at = 0; at < sum.element_count(); at += kLanes) {
      const int64_t n = std::min(kLanes, sum.element_count() - at);
      from.load(first.bytes() + at * from.bytes, 1, body.argument(0), n);
      for (size_t m = 1; m < all.size(); ++m) {
        from.load(all[m][k].bytes() + at * from.bytes, 1, body.argument(1), n);
        COLLET_TRY(body.run(n));
        body.feed_back(n);
      }
      to.store(body.argument(0), bytes + at * to.bytes, 1, n);
    }
    return sum;
  }

  Expected<Literal> all_reduce(const CollectiveAttrs& attrs) {
    COLLET_ASSIGN(const Members group, members(attrs.groups, attrs.channel, attrs.global_ids));
    COLLET_ASSIGN(const Everyone all, exchange(group));
    std::vector<Literal> results;
    for (size_t k = 0; k < in_.operand_count(); ++k) {
      COLLET_ASSIGN(Literal sum, folded(all, k));
      results.push_back(std::move(sum));
    }
    return results.size() == 1 && !in_.instr.shape.is_tuple() ? std::move(results[0])
                                                              : Literal::tuple(std::move(results));
  }

  static Literal block(const Literal& whole, int64_t dim, int64_t start, int64_t size) {
    std::vector<int64_t> dims(whole.shape().dims().begin(), whole.shape().dims().end());
    const Ints from = row_major_strides(dims);
    dims[static_cast<size_t>(dim)] = size;
    Literal out = Literal::uninitialized(Shape::array(whole.type(), dims));
    const int bytes = type_info(whole.type()).bytes();
    if (out.element_count() > 0)
      copy_strided(dims, whole.bytes() + start * from[static_cast<size_t>(dim)] * bytes, from, out.mutable_bytes(),
                   row_major_strides(dims), bytes);
    return out;
  }

  static Literal join(const std::vector<Literal>& parts, int64_t dim) {
    std::vector<int64_t> dims(parts[0].shape().dims().begin(), parts[0].shape().dims().end());
    const auto d = static_cast<size_t>(dim);
    dims[d] = 0;
    for (const Literal& part : parts) dims[d] += part.shape().dims()[d];
    Literal out = Literal::uninitialized(Shape::array(parts[0].type(), dims));
    const Ints to = row_major_strides(dims);
    const int bytes = type_info(out.type()).bytes();
    uint8_t* at = out.mutable_bytes();
    for (const Literal& part : parts) {
      copy_strided(part.shape().dims(), part.bytes(), row_major_strides(part.shape().dims()), at, to, bytes);
      at += part.shape().dims()[d] * to[d] * bytes;
    }
    return out;
  }

  /// Returns `value` if it has the shape that the module states. A participant that runs alone has the first shard, and
  /// zeros in place of the others.
  Expected<Literal> fitted(Literal value, size_t k) const {
    const Shape* shape = &in_.instr.shape;
    if (in_.instr.op == Op::ALL_GATHER_START) shape = &shape->element(1);
    if (shape->is_tuple()) shape = &shape->element(k);
    if (value.shape().compatible(*shape)) return value;
    if (alone() && value.shape().rank() == shape->rank()) {
      std::vector<int64_t> common(shape->dims().begin(), shape->dims().end());
      for (size_t d = 0; d < common.size(); ++d) common[d] = std::min(common[d], value.shape().dims()[d]);
      Literal out = Literal::zeros(*shape);
      if (context_.other_choices() && shape->type() != Type::PRED)
        std::memset(out.mutable_bytes(), 0xFF, static_cast<size_t>(out.byte_size()));
      if (product(common) > 0)
        copy_strided(common, value.bytes(), row_major_strides(value.shape().dims()), out.mutable_bytes(),
                     row_major_strides(shape->dims()), type_info(shape->type()).bytes());
      return out;
    }
    return failed_precondition("the group gives " + value.shape().to_string() + " where the module states " +
                               shape->to_string() + ": the run has other participants than the module was made for");
  }

  Expected<Literal> reduce_scatter(const CollectiveDimAttrs& attrs) {
    COLLET_ASSIGN(const Members group, members(attrs.groups, attrs.channel, attrs.global_ids));
    COLLET_ASSIGN(Everyone all, exchange(group));
    // Only the part of the sum that this participant keeps is computed.
    const auto count = static_cast<int64_t>(group.ids.size());
    for (auto& operands : all)
      for (Literal& whole : operands) {
        const int64_t size = whole.shape().dim(static_cast<int>(attrs.dimension)) / count;
        whole = block(whole, attrs.dimension, static_cast<int64_t>(group.self) * size, size);
      }
    std::vector<Literal> results;
    for (size_t k = 0; k < in_.operand_count(); ++k) {
      COLLET_ASSIGN(Literal sum, folded(all, k));
      COLLET_ASSIGN(Literal part, fitted(std::move(sum), k));
      results.push_back(std::move(part));
    }
    return as_result(std::move(results));
  }

  Expected<Literal> all_gather(const CollectiveDimAttrs& attrs) {
    COLLET_ASSIGN(const Members group, members(attrs.groups, attrs.channel, attrs.global_ids));
    COLLET_ASSIGN(const Everyone all, exchange(group));
    std::vector<Literal> results;
    for (size_t k = 0; k < in_.operand_count(); ++k) {
      std::vector<Literal> parts;
      for (const auto& operands : all) parts.push_back(operands[k]);
      COLLET_ASSIGN(Literal part, fitted(join(parts, attrs.dimension), k));
      results.push_back(std::move(part));
    }
    return as_result(std::move(results));
  }

  Expected<Literal> all_to_all(const AllToAllAttrs& attrs) {
    COLLET_ASSIGN(const Members group, members(attrs.groups, attrs.channel, std::nullopt));
    COLLET_ASSIGN(const Everyone all, exchange(group));
    const auto count = static_cast<int64_t>(group.ids.size()), self = static_cast<int64_t>(group.self);
    if (attrs.dimension.empty() && alone()) return as_result({in_.operands.begin(), in_.operands.end()});
    if (attrs.dimension.empty()) {  // one operand for each member
      if (static_cast<int64_t>(in_.operand_count()) != count)
        return failed_precondition("all-to-all has " + std::to_string(in_.operand_count()) +
                                   " operands for a group of " + std::to_string(count));
      std::vector<Literal> results;
      for (const auto& operands : all) results.push_back(operands[group.self]);
      return in_.instr.shape.is_tuple() ? Literal::tuple(std::move(results)) : std::move(results[0]);
    }
    const int64_t dim = attrs.dimension[0];
    const int64_t size = in_.operand(0).shape().dim(static_cast<int>(dim));
    if (size % count)
      return failed_precondition("all-to-all cannot cut " + std::to_string(size) + " into equal blocks");
    std::vector<Literal> parts;
    for (const auto& operands : all) parts.push_back(block(operands[0], dim, self * (size / count), size / count));
    return join(parts, dim);
  }

  // Operands: input, output, input offsets, send sizes, output offsets, receive sizes; along dimension 0.
  Expected<Literal> ragged(const AllToAllAttrs& attrs) {
    COLLET_ASSIGN(const Members group, members(attrs.groups, attrs.channel, std::nullopt));
    COLLET_ASSIGN(const Everyone all, exchange(group));
    Literal out = in_.operand(1);
    const auto count = static_cast<int64_t>(group.ids.size()), self = static_cast<int64_t>(group.self);
    const int64_t rows = out.shape().rank() ? out.shape().dim(0) : 0;
    const int64_t row_bytes = rows ? out.byte_size() / rows : 0;
    uint8_t* to = out.mutable_bytes();
    for (const auto& sender : all) {
      const int64_t updates = sender[2].element_count() / count;
      for (int64_t u = self * updates; u < (self + 1) * updates; ++u) {
        const int64_t from = sender[2].as_int(u), size = sender[3].as_int(u), target = sender[4].as_int(u);
        const int64_t available = sender[0].shape().rank() ? sender[0].shape().dim(0) : 0;
        if (size < 0 || from < 0 || from > available - size || target < 0 || target > rows - size)
          return invalid_argument("ragged-all-to-all moves rows that are not there");
        if (size > 0)
          std::memcpy(to + target * row_bytes, sender[0].bytes() + from * row_bytes,
                      static_cast<size_t>(size * row_bytes));
      }
    }
    return out;
  }

  Expected<Literal> broadcast(const CollectiveAttrs& attrs) {
    bool listed = attrs.groups.empty();
    COLLET_ASSIGN(const Members group, members(attrs.groups, attrs.channel, std::nullopt));
    COLLET_ASSIGN(const GroupMode mode, group_mode(in_.instr.op, attrs.channel != 0, std::nullopt));
    for (const Dims& numbers : attrs.groups.groups)
      for (int64_t number : numbers) {
        Ints ids;
        add(mode, number, ids);
        listed |= std::find(ids.begin(), ids.end(), me_) != ids.end();
      }
    COLLET_ASSIGN(const Everyone all, exchange(group));
    std::vector<Literal> results;
    for (const Literal& value : all[0]) results.push_back(listed ? value : Literal::zeros(value.shape()));
    return results.size() == 1 && !in_.instr.shape.is_tuple() ? std::move(results[0])
                                                              : Literal::tuple(std::move(results));
  }

  // All participants take part; one that is no target gets zeros. Pairs with participants that do not exist move
  // nothing.
  Expected<Literal> permute(const CollectivePermuteAttrs& attrs) {
    COLLET_ASSIGN(const GroupMode mode, group_mode(in_.instr.op, attrs.channel != 0, std::nullopt));
    Members everyone{pool(mode), 0};
    const auto self = std::find(everyone.ids.begin(), everyone.ids.end(), me_) - everyone.ids.begin();
    COLLET_ASSIGN(const Everyone all, exchange(everyone));
    const std::vector<Literal>* from = nullptr;
    for (size_t i = 0; i + 1 < attrs.pairs.size(); i += 2)
      if (attrs.pairs[i + 1] == self && attrs.pairs[i] >= 0 && attrs.pairs[i] < static_cast<int64_t>(all.size()))
        from = &all[static_cast<size_t>(attrs.pairs[i])];
    if (!attrs.slice_sizes.empty()) return permute_slices(attrs, from);
    std::vector<Literal> results;
    for (size_t k = 0; k < in_.operand_count(); ++k)
      results.push_back(from ? (*from)[k] : Literal::zeros(in_.operand(k).shape()));
    return as_result(std::move(results));
  }

  static Ints starts_of(const Literal& value) {
    Ints starts;
    if (value.shape().is_tuple())
      for (const Literal& element : value.elements()) starts.push_back(element.as_int(0));
    else
      for (int64_t i = 0; i < value.element_count(); ++i) starts.push_back(value.as_int(i));
    return starts;
  }

  // Operands: input, output, offsets to read from, offsets to write to.
  Expected<Literal> permute_slices(const CollectivePermuteAttrs& attrs, const std::vector<Literal>* from) {
    if (in_.operand_count() != 4 || attrs.slice_sizes.size() != 1 || !in_.operand(0).shape().is_array())
      return unimplemented("collective-permute of several slices");
    Literal out = in_.operand(1);
    if (!from) return out;
    const Dims sizes = attrs.slice_sizes[0];
    const Ints source = row_major_strides((*from)[0].shape().dims()), target = row_major_strides(out.shape().dims());
    const Ints read = starts_of((*from)[2]), write = starts_of((*from)[3]);
    int64_t a = 0, b = 0;
    if (read.size() != sizes.size() || write.size() != sizes.size() || source.size() != sizes.size() ||
        target.size() != sizes.size())
      return invalid_argument("the slices of collective-permute do not fit");
    for (size_t d = 0; d < sizes.size(); ++d) {
      const int64_t most_read = (*from)[0].shape().dims()[d] - sizes[d], most_write = out.shape().dims()[d] - sizes[d];
      if (most_read < 0 || most_write < 0) return invalid_argument("the slices of collective-permute do not fit");
      a += std::clamp<int64_t>(read[d], 0, most_read) * source[d];
      b += std::clamp<int64_t>(write[d], 0, most_write) * target[d];
    }
    const int bytes = type_info(out.type()).bytes();
    copy_strided(sizes, (*from)[0].bytes() + a * bytes, source, out.mutable_bytes() + b * bytes, target, bytes);
    return out;
  }

  const EvalInput& in_;
  EvalContext& context_;
  int64_t partitions_, me_;
};

}  // namespace

Expected<Literal> evaluate_collective(const EvalInput& in) {
  return Collective(in).run();
}

}  // namespace collet::hlo

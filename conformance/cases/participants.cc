// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/participants.h"

#include <collet/hash.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>

#include "conformance/cases/types.h"

namespace collet::conformance {
namespace {

using hlo::Literal;
using Groups = std::vector<std::vector<uint32_t>>;
using Pairs = std::vector<std::pair<uint32_t, uint32_t>>;

// Numbers are drawn from -kMost to kMost, so that sums of a few dozen are exact in every type.
constexpr int64_t kMost = 2;

struct NamedGroups {
  std::string name;
  Groups groups;
};

// An array whose dimensions are multiples of the number of participants.
struct NamedShape {
  std::string_view name;
  std::vector<int64_t> dims;
};

std::string text_of(const Groups& groups) {
  std::string out;
  for (const std::vector<uint32_t>& group : groups)
    out += fmt::format("{}{{{}}}", out.empty() ? "" : ",", fmt::join(group, ","));
  return "{" + out + "}";
}

// Returns the groups in which `participant` stands; null if in none.
const std::vector<uint32_t>* group_of(const Groups& groups, uint32_t participant) {
  for (const std::vector<uint32_t>& group : groups)
    if (std::find(group.begin(), group.end(), participant) != group.end()) return &group;
  return nullptr;
}

// How an array is divided along a dimension.
struct Strides {
  int64_t outer = 1, size = 1, inner = 1;  // inner: bytes
};
Strides strides_of(const Shape& shape, int dimension) {
  Strides out;
  for (int d = 0; d < dimension; ++d) out.outer *= shape.dim(d);
  out.size = shape.dim(dimension);
  out.inner = shape.element_count() ? shape.byte_size() / (out.outer * out.size) : 0;
  return out;
}

// Copies `count` slices along a dimension.
void copy_slices(const Literal& from, int64_t from_at, Literal& to, int64_t to_at, int64_t count, int dimension) {
  const Strides f = strides_of(from.shape(), dimension), t = strides_of(to.shape(), dimension);
  uint8_t* const out = to.mutable_bytes();
  for (int64_t o = 0; o < f.outer; ++o)
    std::memcpy(out + (o * t.size + to_at) * t.inner, from.bytes() + (o * f.size + from_at) * f.inner,
                static_cast<size_t>(count * f.inner));
}

double combine(std::string_view how, double a, double b) {
  if (how == "add") return a + b;
  if (how == "maximum") return std::max(a, b);
  if (how == "minimum") return std::min(a, b);
  if (how == "or") return a != 0 || b != 0 ? 1 : 0;
  return a != 0 && b != 0 ? 1 : 0;  // and, of pred
}

Literal sum_of(std::string_view how, const std::vector<uint32_t>& group, const ByParticipant& in, size_t parameter) {
  const Shape& shape = in[0][parameter].shape();
  Literal out = Literal::uninitialized(shape);
  out.mutable_bytes();
  for (int64_t i = 0; i < shape.element_count(); ++i) {
    double value = in[group[0]][parameter].as_double(i), imaginary = in[group[0]][parameter].imaginary(i);
    for (size_t m = 1; m < group.size(); ++m) {
      value = combine(how, value, in[group[m]][parameter].as_double(i));
      imaginary += in[group[m]][parameter].imaginary(i);
    }
    out.set_double(i, value, imaginary);
  }
  return out;
}

using Answer = std::function<std::vector<Literal>(const ByParticipant& inputs, uint32_t participant)>;

// Returns an answer that `function` gives by the group of the participant and its place there.
template <typename Function>
Answer by_group(const Groups& groups, const Function& function) {
  return [=](const ByParticipant& in, uint32_t p) -> std::vector<Literal> {
    const std::vector<uint32_t>& group = *group_of(groups, p);
    const auto at = std::find(group.begin(), group.end(), p) - group.begin();
    return function(in, group, static_cast<int64_t>(at));
  };
}

class Maker {
 public:
  Maker(uint32_t processes, uint32_t devices, bool full)
      : processes_(processes), devices_(devices), count_(processes * devices), full_(full) {
    NamedGroups all{"all", {{}}}, turned{"turned", {{}}}, alone{"alone", {}};
    for (uint32_t p = 0; p < count_; ++p) {
      all.groups[0].push_back(p);
      alone.groups.push_back({p});
    }
    turned.groups[0].assign(all.groups[0].rbegin(), all.groups[0].rend());
    equal_ = {all, turned};
    if (count_ > 1) equal_.push_back(alone);
    if (devices_ > 1 && processes_ > 1) {
      NamedGroups within{"within", Groups(processes_)}, across{"across", Groups(devices_)};
      for (uint32_t p = 0; p < count_; ++p) {
        within.groups[p / devices_].push_back(p);
        across.groups[p % devices_].push_back(p);
      }
      equal_.push_back(within);
      equal_.push_back(across);
    }
    if (count_ >= 4 && count_ % 2 == 0) {
      NamedGroups pairs{"pairs", {}};
      for (uint32_t p = 0; p < count_ / 2; ++p) pairs.groups.push_back({count_ - 1 - p, p});
      equal_.push_back(pairs);
    }
  }

  std::vector<ParticipantCase> make() {
    constexpr Type kTypes[] = {Type::F32, Type::S32, Type::BF16, Type::F16,  Type::F64,
                               Type::S64, Type::U8,  Type::S8,   Type::PRED, Type::C64};
    const NamedShape small{"small", {2 * count_, 3 * count_}}, large{"large", {8 * count_, 40 * count_, 17}},
        pieces{"pieces", {300'000 * count_}};
    for (const Type type : kTypes) {
      const bool common = type == Type::F32 || type == Type::S32 || type == Type::BF16;
      for (const NamedGroups& groups : equal_) {
        if (!full_ && !common && groups.name != "all") continue;
        add_all(type, small, groups);
        if (common || full_) add_all(type, large, groups);
      }
      if (type == Type::F32 || full_) add_all(type, pieces, equal_[0]);
    }
    add_reductions();
    add_unequal();
    add_partitions();
    add_programs();
    for (const Type type : {Type::F32, Type::S32, Type::U8, Type::C64}) {
      add_ragged(type, "small", 1);
      add_ragged(type, "large", 700);
      if (count_ == 1) continue;
      add_transfers(type, small);
      add_transfers(type, large);
    }
    return std::move(list_);
  }

 private:
  std::string header(bool partitions = false) const {
    return fmt::format("HloModule m, {}={}\n\n", partitions ? "num_partitions" : "replica_count", count_);
  }

  // `lines`: of the entry, with the root.
  void add(Op op, Type type, const std::string& rest_of_name, const std::string& head, const std::string& computations,
           std::vector<Shape> parameters, const std::string& lines, Answer answer) {
    ParticipantCase out;
    out.one.name = fmt::format("{}/{}/{}/whole", hlo::op_info(op).text, type_name(type), rest_of_name);
    out.one.op = op;
    out.one.type = type;
    out.one.text = head + computations + "ENTRY main {\n";
    for (size_t i = 0; i < parameters.size(); ++i)
      out.one.text += fmt::format("  p{} = {} parameter({})\n", i, parameters[i].to_string(), i);
    out.one.text += lines + "}\n";
    out.participants = count_;
    out.parameters = std::move(parameters);
    out.answer = std::move(answer);
    list_.push_back(std::move(out));
  }

  static std::string combiner(std::string_view how, Type type) {
    return fmt::format(
        "comp {{\n  a = {0}[] parameter(0)\n  b = {0}[] parameter(1)\n  ROOT r = {0}[] {1}(a, b)\n}}\n\n",
        hlo::type_info(type).text, how);
  }
  static std::string_view sum(Type type) { return type == Type::PRED ? "or" : "add"; }

  // Adds the collectives of one type, shape and groups.
  void add_all(Type type, const NamedShape& shape, const NamedGroups& named) {
    const Groups& groups = named.groups;
    const auto members = static_cast<int64_t>(groups[0].size());
    const std::string list = "replica_groups=" + text_of(groups);
    const Shape whole = Shape::array(type, shape.dims);
    const auto name = [&](std::string_view more = "") { return fmt::format("{}.{}{}", shape.name, named.name, more); };
    const auto root = [&](const Shape& result, Op op, const std::string& attributes) {
      return fmt::format("  ROOT r = {} {}(p0), {}\n", result.to_string(), hlo::op_info(op).text, attributes);
    };
    add_reduction(sum(type), type, whole, name(), groups);
    const int rank = static_cast<int>(shape.dims.size());
    for (int d = 0; d < std::min(rank, 2); ++d) {
      if (type != Type::F32 && d > 0 && !full_) continue;
      const std::string along = fmt::format(".dim{}", d), dimensions = fmt::format(", dimensions={{{}}}", d);
      std::vector<int64_t> dims = shape.dims;
      dims[static_cast<size_t>(d)] *= members;
      const Shape gathered = Shape::array(type, dims);
      dims[static_cast<size_t>(d)] = shape.dims[static_cast<size_t>(d)] / members;
      const Shape scattered = Shape::array(type, dims);
      const int64_t size = whole.dim(d), part = size / members;
      add(Op::ALL_GATHER, type, name(along), header(), "", {whole}, root(gathered, Op::ALL_GATHER, list + dimensions),
          by_group(groups, [=](const ByParticipant& in, const std::vector<uint32_t>& group, int64_t) {
            Literal out = Literal::zeros(gathered);
            for (size_t m = 0; m < group.size(); ++m)
              copy_slices(in[group[m]][0], 0, out, static_cast<int64_t>(m) * size, size, d);
            return std::vector<Literal>{out};
          }));
      add(Op::REDUCE_SCATTER, type, name(along), header(), combiner(sum(type), type), {whole},
          root(scattered, Op::REDUCE_SCATTER, list + dimensions + ", to_apply=comp"),
          by_group(groups, [=](const ByParticipant& in, const std::vector<uint32_t>& group, int64_t at) {
            Literal out = Literal::zeros(scattered);
            copy_slices(sum_of(sum(type), group, in, 0), at * part, out, 0, part, d);
            return std::vector<Literal>{out};
          }));
      add(Op::ALL_TO_ALL, type, name(along), header(), "", {whole}, root(whole, Op::ALL_TO_ALL, list + dimensions),
          by_group(groups, [=](const ByParticipant& in, const std::vector<uint32_t>& group, int64_t at) {
            Literal out = Literal::zeros(whole);
            for (size_t m = 0; m < group.size(); ++m)
              copy_slices(in[group[m]][0], at * part, out, static_cast<int64_t>(m) * part, part, d);
            return std::vector<Literal>{out};
          }));
    }
    add(Op::COLLECTIVE_BROADCAST, type, name(), header(), "", {whole}, root(whole, Op::COLLECTIVE_BROADCAST, list),
        by_group(groups, [](const ByParticipant& in, const std::vector<uint32_t>& group, int64_t) {
          return std::vector{in[group[0]][0]};
        }));
    if (named.name != "all") return;
    Pairs ring, some;
    for (uint32_t p = 0; p < count_; ++p) ring.emplace_back(p, (p + 1) % count_);
    some.emplace_back(count_ - 1, 0);
    add_permute(type, whole, fmt::format("{}.ring", shape.name), ring);
    add_permute(type, whole, fmt::format("{}.one", shape.name), some);
  }

  void add_permute(Type type, const Shape& whole, const std::string& name, const Pairs& pairs) {
    std::string list;
    for (const auto& [from, to] : pairs) list += fmt::format("{}{{{},{}}}", list.empty() ? "" : ",", from, to);
    add(Op::COLLECTIVE_PERMUTE, type, name, header(), "", {whole},
        fmt::format("  ROOT r = {} collective-permute(p0), source_target_pairs={{{}}}\n", whole.to_string(), list),
        [=](const ByParticipant& in, uint32_t p) {
          for (const auto& [from, to] : pairs)
            if (to == p) return std::vector{in[from][0]};
          return std::vector{Literal::zeros(whole)};
        });
  }

  // Participant p sends participant q (p + q) % 3 rows of so many elements: those from row 3 q on, to row 3 p.
  void add_ragged(Type type, std::string_view name, int64_t width) {
    constexpr int64_t kMostRows = 3;
    const Shape whole = Shape::array(type, {kMostRows * count_, width});
    const std::string numbers = fmt::format("s32[{}]", count_);
    add(Op::RAGGED_ALL_TO_ALL, type, fmt::format("{}.all", name), header(), "", {whole, whole},
        fmt::format("  i = u32[] replica-id()\n  n = s32[] convert(i)\n  p = {0} broadcast(n), dimensions={{}}\n"
                    "  q = {0} iota(), iota_dimension=0\n  s = {0} add(p, q)\n  m = s32[] constant({1})\n"
                    "  most = {0} broadcast(m), dimensions={{}}\n  rows = {0} remainder(s, most)\n"
                    "  from = {0} multiply(q, most)\n  to = {0} multiply(p, most)\n"
                    "  ROOT r = {2} ragged-all-to-all(p0, p1, from, rows, to, rows), replica_groups={3}\n",
                    numbers, kMostRows, whole.to_string(), text_of(equal_[0].groups)),
        [count = count_](const ByParticipant& in, uint32_t p) {
          Literal out = in[p][1];
          for (uint32_t m = 0; m < count; ++m)
            copy_slices(in[m][0], kMostRows * p, out, kMostRows * m, (m + p) % kMostRows, 0);
          return std::vector{out};
        });
  }

  // Each participant sends its argument to the next one, or to the one before.
  void add_transfers(Type type, const NamedShape& shape) {
    const Shape whole = Shape::array(type, shape.dims);
    for (const bool back : {false, true}) {
      const uint32_t step = back ? count_ - 1 : 1;
      std::string pairs;
      for (uint32_t p = 0; p < count_; ++p) pairs += fmt::format("{}{{{},{}}}", p ? "," : "", p, (p + step) % count_);
      add(Op::SEND, type, fmt::format("{}.{}", shape.name, back ? "back" : "ring"), header(), "", {whole},
          fmt::format("  t = token[] after-all()\n  s = ({0}, u32[], token[]) send(p0, t), {1}\n"
                      "  v = ({0}, u32[], token[]) recv(t), {1}\n  d = ({0}, token[]) recv-done(v), {1}\n"
                      "  e = token[] send-done(s), {1}\n  ROOT r = {0} get-tuple-element(d), index=0\n",
                      whole.to_string(),
                      "channel_id=7, frontend_attributes={_xla_send_recv_source_target_pairs=\"{" + pairs + "}\"}"),
          [count = count_, step](const ByParticipant& in, uint32_t p) {
            return std::vector{in[(p + count - step) % count][0]};
          });
    }
  }

  void add_reduction(std::string_view how, Type type, const Shape& whole, const std::string& name, const Groups& groups,
                     const std::string& head = "", const std::string& more = "") {
    add(Op::ALL_REDUCE, type, name, head.empty() ? header() : head, combiner(how, type), {whole},
        fmt::format("  ROOT r = {} all-reduce(p0), replica_groups={}{}, to_apply=comp\n", whole.to_string(),
                    text_of(groups), more),
        by_group(groups, [=](const ByParticipant& in, const std::vector<uint32_t>& group, int64_t) {
          return std::vector<Literal>{sum_of(how, group, in, 0)};
        }));
  }

  void add_reductions() {
    for (const std::string_view how : {"maximum", "minimum"})
      for (const Type type : {Type::F32, Type::S32, Type::BF16})
        for (const int64_t rows : {int64_t{5}, int64_t{20'000}})
          add_reduction(how, type, Shape::array(type, {rows}), fmt::format("{}.{}", rows, how), equal_[0].groups);
    add_reduction("and", Type::PRED, Shape::array(Type::PRED, {40'000}), "40000.and", equal_[0].groups);
    const Shape one = Shape::array(Type::F32, {20'000}), other = Shape::array(Type::F32, {77});
    add(Op::ALL_REDUCE, Type::F32, "two_arrays", header(), combiner("add", Type::F32), {one, other},
        fmt::format("  r = ({0}, {1}) all-reduce(p0, p1), replica_groups={2}, to_apply=comp\n"
                    "  a = {0} get-tuple-element(r), index=0\n  b = {1} get-tuple-element(r), index=1\n"
                    "  ROOT t = ({1}, {0}) tuple(b, a)\n",
                    one.to_string(), other.to_string(), text_of(equal_[0].groups)),
        by_group(equal_[0].groups, [](const ByParticipant& in, const std::vector<uint32_t>& group, int64_t) {
          return std::vector<Literal>{sum_of("add", group, in, 1), sum_of("add", group, in, 0)};
        }));
  }

  void add_unequal() {
    if (count_ < 3) return;
    Groups groups{{}, {0}};
    for (uint32_t p = 1; p < count_; ++p) groups[0].push_back(p);
    for (const int64_t size : {int64_t{6}, int64_t{30'000}})
      add_reduction("add", Type::S32, Shape::array(Type::S32, {size}), fmt::format("{}.unequal", size), groups);
  }

  void add_partitions() {
    const std::string more = ", channel_id=1, use_global_device_ids=true";
    for (const NamedGroups& named : equal_)
      add_reduction("add", Type::F32, Shape::array(Type::F32, {12'000}), "12000.partitions_" + named.name, named.groups,
                    header(true), more);
  }

  // Programs in which other ops stand before, between and after collectives.
  void add_programs() {
    const Shape s32 = Shape::array(Type::S32, {24});
    const Groups& all = equal_[0].groups;
    const uint32_t count = count_;
    const std::string list = text_of(all);
    const auto map = [](const std::function<int64_t(const ByParticipant&, uint32_t, int64_t)>& element) -> Answer {
      return [=](const ByParticipant& in, uint32_t p) {
        Literal one = Literal::zeros(in[p][0].shape());
        for (int64_t i = 0; i < one.element_count(); ++i) one.set_int(i, element(in, p, i));
        return std::vector{one};
      };
    };
    const auto total = [count](const ByParticipant& in, int64_t i) {
      int64_t sum = 0;
      for (uint32_t p = 0; p < count; ++p) sum += in[p][0].as_int(i);
      return sum;
    };
    for (const bool partitions : {false, true})
      add(Op::ALL_REDUCE, Type::S32, partitions ? "partition_id" : "replica_id", header(partitions),
          combiner("add", Type::S32), {s32},
          fmt::format("  i = u32[] {}-id()\n  n = s32[] convert(i)\n  b = s32[24] broadcast(n), dimensions={{}}\n"
                      "  x = s32[24] multiply(p0, b)\n  y = s32[24] all-reduce(x), replica_groups={}{}, to_apply=comp\n"
                      "  ROOT r = s32[24] subtract(y, b)\n",
                      partitions ? "partition" : "replica", list,
                      partitions ? ", channel_id=1, use_global_device_ids=true" : ""),
          map([count](const ByParticipant& in, uint32_t p, int64_t i) {
            int64_t sum = -static_cast<int64_t>(p);
            for (uint32_t q = 0; q < count; ++q) sum += in[q][0].as_int(i) * q;
            return sum;
          }));
    add(Op::ALL_REDUCE, Type::S32, "in_a_loop", header(),
        combiner("add", Type::S32) +
            "cond {\n  c = (s32[], s32[24]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n  n = s32[] "
            "constant(3)\n  ROOT r = pred[] compare(i, n), direction=LT\n}\n\nbody {\n  c = (s32[], s32[24]) "
            "parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n  x = s32[24] get-tuple-element(c), index=1\n  "
            "one = s32[] constant(1)\n  j = s32[] add(i, one)\n  y = s32[24] all-reduce(x), replica_groups=" +
            list + ", to_apply=comp\n  ROOT r = (s32[], s32[24]) tuple(j, y)\n}\n\n",
        {s32},
        "  zero = s32[] constant(0)\n  t = (s32[], s32[24]) tuple(zero, p0)\n  w = (s32[], s32[24]) while(t), "
        "condition=cond, body=body\n  ROOT r = s32[24] get-tuple-element(w), index=1\n",
        map([=](const ByParticipant& in, uint32_t, int64_t i) { return total(in, i) * count * count; }));
    std::string ring;
    for (uint32_t p = 0; p < count; ++p) ring += fmt::format("{}{{{},{}}}", p ? "," : "", p, (p + 1) % count);
    add(Op::COLLECTIVE_PERMUTE, Type::S32, "one_after_another", header(), combiner("add", Type::S32), {s32},
        fmt::format("  a = s32[24] collective-permute(p0), source_target_pairs={{{}}}\n  d = s32[24] subtract(p0, a)\n"
                    "  s = s32[24] all-reduce(p0), replica_groups={}, to_apply=comp\n  m = s32[24] multiply(d, s)\n"
                    "  ROOT r = s32[24] collective-permute(m), source_target_pairs={{{}}}\n",
                    ring, list, ring),
        map([=](const ByParticipant& in, uint32_t p, int64_t i) {
          const uint32_t before = (p + count - 1) % count, two = (p + 2 * count - 2) % count;
          return (in[before][0].as_int(i) - in[two][0].as_int(i)) * total(in, i);
        }));
  }

  const uint32_t processes_, devices_, count_;
  const bool full_;
  std::vector<NamedGroups> equal_;  // of groups with equally many members
  std::vector<ParticipantCase> list_;
};

}  // namespace

std::vector<ParticipantCase> participant_cases(uint32_t processes, uint32_t devices, bool full) {
  return Maker(processes, devices, full).make();
}

ByParticipant draw_inputs(const ParticipantCase& which, uint64_t seed) {
  ByParticipant out(which.participants);
  for (uint32_t p = 0; p < which.participants; ++p)
    for (size_t n = 0; n < which.parameters.size(); ++n) {
      const Shape& shape = which.parameters[n];
      Literal value = Literal::uninitialized(shape);
      value.mutable_bytes();
      uint64_t state = collet_hash_number(collet_hash_number(seed, p), n);
      const bool is_signed = hlo::type_info(shape.type()).text[0] != 'u' && shape.type() != Type::PRED;
      for (int64_t i = 0; i < shape.element_count(); ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const auto draw = static_cast<int64_t>((state >> 33) % (2 * kMost + 1));
        const int64_t number = shape.type() == Type::PRED ? draw & 1 : is_signed ? draw - kMost : draw;
        value.set_double(i, static_cast<double>(number), static_cast<double>(kMost - draw));
      }
      out[p].push_back(std::move(value));
    }
  return out;
}

}  // namespace collet::conformance

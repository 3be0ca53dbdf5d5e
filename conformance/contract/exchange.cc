// SPDX-License-Identifier: Apache-2.0
// The table "exchange", in a group of one process: what each kind of exchange does with its members' arrays.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "conformance/contract/program.h"

namespace collet::conformance {
namespace {

constexpr uint64_t kAround = 64;  // bytes before and behind each array

const char* name_of(uint32_t kind) {
  switch (kind) {
    case COLLET_EXCHANGE_ALL_REDUCE:
      return "all-reduce";
    case COLLET_EXCHANGE_REDUCE_SCATTER:
      return "reduce-scatter";
    case COLLET_EXCHANGE_ALL_GATHER:
      return "all-gather";
    default:
      return "copies";
  }
}

// Combines two elements. Those of arrays are exact in every type that is tried.
template <typename T>
T combined(uint32_t how, T a, T b) {
  switch (how) {
    case COLLET_COMBINE_MULTIPLY:
      return a * b;
    case COLLET_COMBINE_MINIMUM:
      return std::min(a, b);
    case COLLET_COMBINE_MAXIMUM:
      return std::max(a, b);
    case COLLET_COMBINE_ADD:
      return a + b;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (how == COLLET_COMBINE_AND) return a & b;
    if (how == COLLET_COMBINE_OR) return a | b;
    if (how == COLLET_COMBINE_XOR) return a ^ b;
  }
  return a;
}

// Hands the bytes of the one process of a group to itself.
collet_status exchange_alone(void*, const void* mine, uint64_t bytes, void* out, collet_error*) {
  if (bytes) std::memcpy(out, mine, bytes);
  return COLLET_OK;
}

/// An exchange that is tried: the devices of its members, its arrays, and what comes out.
struct Trial {
  uint32_t kind = 0, element = 0, combine = 0;
  uint64_t count = 0;
  std::vector<uint32_t> devices;  ///< of the members
  std::vector<collet_exchange_copy> copies;
  std::vector<Bytes> operands, results;
};

// A factor with which sums of the small numbers of a trial need almost all bits of the type.
double factor_of(uint32_t element) {
  switch (element) {
    case COLLET_TYPE_F32:
      return 0x1p19 + 1;
    case COLLET_TYPE_F64:
      return 0x1p48 + 1;
    case COLLET_TYPE_S32:
      return 0x1p26 + 1;
    case COLLET_TYPE_S64:
    case COLLET_TYPE_U64:
      return 0x1p50 + 1;
    default:
      return 1;
  }
}

// Fills the operands with numbers of which all sums and products are exact, and the results with what the exchange gives. Integers are
// computed as T = int64_t, others as double, of complex numbers both parts.
template <typename T>
void fill(Trial& t) {
  const auto type = static_cast<hlo::Type>(t.element);
  const size_t members = t.devices.size();
  const bool scatters = t.kind == COLLET_EXCHANGE_REDUCE_SCATTER, gathers = t.kind == COLLET_EXCHANGE_ALL_GATHER;
  const bool is_pred = type == hlo::Type::PRED;
  const auto factor = t.combine == COLLET_COMBINE_ADD ? static_cast<T>(factor_of(t.element)) : T{1};
  const uint64_t in = t.count * (scatters ? members : 1), out = t.count * (gathers ? members : 1);
  const auto number = [&](size_t m, uint64_t i) {
    const auto small = static_cast<T>((7 * m + 3 * i + i / 11) % 5 + 1);
    return is_pred ? static_cast<T>((m * i + i / 2) % 2) : small * factor;
  };
  const auto store = [&](uint64_t count, const auto& value) {
    hlo::Literal all = hlo::Literal::zeros(hlo::Shape::array(type, {static_cast<int64_t>(count)}));
    for (uint64_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(i);
      if constexpr (std::is_integral_v<T>)
        all.set_int(at, value(i));
      else
        all.set_double(at, value(i), hlo::is_complex(type) ? -value(i) : 0);
    }
    return Bytes(all.bytes(), all.bytes() + all.byte_size());
  };
  for (size_t m = 0; m < members; ++m) {
    t.operands.push_back(store(in, [&](uint64_t i) { return number(m, i); }));
    t.results.push_back(store(out, [&](uint64_t i) {
      if (gathers) return number(i / t.count, i % t.count);
      const uint64_t at = i + (scatters ? m * t.count : 0);
      T sum = number(0, at);
      for (size_t k = 1; k < members; ++k) sum = combined(t.combine, sum, number(k, at));
      return sum;
    }));
  }
}

// True if a device may be asked for this combination, and its results are exact.
bool is_combined(uint32_t element, uint32_t combine) {
  const auto type = static_cast<hlo::Type>(element);
  const bool is_of_bits =
      combine == COLLET_COMBINE_AND || combine == COLLET_COMBINE_OR || combine == COLLET_COMBINE_XOR;
  if (type == hlo::Type::PRED) return is_of_bits;
  if (hlo::is_complex(type)) return combine == COLLET_COMBINE_ADD;
  return !is_of_bits || hlo::is_integer(type);
}

// Copies of several sizes between all members, each to itself, too.
Trial copies_between(const std::vector<uint32_t>& devices) {
  Trial t;
  t.devices = devices;
  const auto members = static_cast<uint32_t>(devices.size());
  constexpr uint64_t kBlock = 1000;
  for (uint32_t m = 0; m < members; ++m) t.operands.push_back(pattern(members * kBlock, m + 1));
  t.results = std::vector<Bytes>(members, Bytes(members * kBlock, 0));
  for (uint32_t from = 0; from < members; ++from)
    for (uint32_t to = 0; to < members; ++to) {
      const collet_exchange_copy copy = {from, to, to * kBlock + 3, from * kBlock + 1, kBlock - 5 - from - to};
      t.copies.push_back(copy);
      std::copy_n(t.operands[from].begin() + static_cast<ptrdiff_t>(copy.from_offset), copy.bytes,
                  t.results[to].begin() + static_cast<ptrdiff_t>(copy.to_offset));
    }
  return t;
}

/// An instance with the table.
struct Devices {
  Instance& instance;
  const collet_exchange_table& table;
};

// As takes is asked.
collet_exchange describe(const Trial& t, const std::vector<collet_exchange_member>& members) {
  collet_exchange out{};
  out.struct_size = sizeof out;
  out.kind = t.kind;
  out.element = t.element;
  out.combine = t.combine;
  out.count = t.count;
  out.members = members.data();
  out.copies = t.copies.data();
  out.member_count = static_cast<uint32_t>(members.size());
  out.copy_count = static_cast<uint32_t>(t.copies.size());
  return out;
}

// Runs an exchange that the device takes; false if it does not, or if it has failed.
bool run_trial(const Devices& devices, const Trial& t) {
  Contract& c = devices.instance.contract();
  std::vector<collet_exchange_member> members;
  for (const uint32_t device : t.devices) members.push_back({0, device, {}, {}});
  const collet_exchange asked = describe(t, members);
  const uint32_t answer = devices.table.takes(devices.instance.handle(), &asked);
  c.check(answer <= 1, Promise::EXCHANGE_TAKES, "takes gave {}", answer);
  c.check(devices.table.takes(devices.instance.handle(), &asked) == answer, Promise::EXCHANGE_TAKES,
          "takes gave another answer the second time");
  if (answer != 1) return false;
  std::vector<Buffer> from, to;
  const Bytes around = pattern(kAround, 99);
  for (size_t m = 0; m < t.devices.size(); ++m) {
    from.push_back(devices.instance.alloc(t.operands[m].size() + kAround, t.devices[m]));
    to.push_back(devices.instance.alloc(t.results[m].size() + 2 * kAround, t.devices[m]));
    if (!from[m] || !to[m]) return false;
    const Bytes before(to[m].bytes(), 0);
    if (!devices.instance.write(from[m], kAround, t.operands[m].data(), t.operands[m].size()) ||
        !devices.instance.write(to[m], before) || !devices.instance.write(to[m], 0, around.data(), kAround) ||
        !devices.instance.write(to[m], kAround + t.results[m].size(), around.data(), kAround))
      return false;
    members[m].from = at(from[m], kAround);
    members[m].to = at(to[m], kAround);
  }
  const std::string what = fmt::format("{} of {} {} among {} devices", name_of(t.kind), t.count,
                                       t.element ? collet_type_name(t.element) : "elements", members.size());
  const collet_group group = {sizeof(collet_group), 0, 1, 0, nullptr, exchange_alone};
  collet_exchange exchange = describe(t, members);
  exchange.timeout_ms = 20000;
  const uint32_t number = 0;
  exchange.group = &group;
  exchange.processes = &number;
  exchange.is_over = [](void*) -> uint32_t { return 0; };
  const collet_status status = checked_call(c, "run of an exchange", [&](collet_error* error) {
    return devices.table.run(devices.instance.handle(), &exchange, error);
  });
  if (!c.check(status == COLLET_OK, Promise::EXCHANGE_RUN, "{} gave status {}", what, status)) return false;
  for (size_t m = 0; m < members.size(); ++m) {
    const Bytes out = devices.instance.read(to[m]), in = devices.instance.read(from[m]);
    if (out.empty() || in.empty()) return false;
    const std::span result(out.data() + kAround, t.results[m].size());
    const size_t difference = first_difference(result, t.results[m]);
    if (!c.check(difference == SIZE_MAX, Promise::EXCHANGE_RUN, "{}: the result of member {} differs from byte {} on",
                 what, m, difference))
      return false;
    c.check(std::equal(around.begin(), around.end(), out.begin()) &&
                std::equal(around.begin(), around.end(), out.end() - kAround),
            Promise::EXCHANGE_RUN, "{}: bytes beside the result of member {} have changed", what, m);
    c.check(std::equal(t.operands[m].begin(), t.operands[m].end(), in.begin() + kAround), Promise::EXCHANGE_RUN,
            "{}: the operand of member {} has changed", what, m);
  }
  return true;
}

constexpr uint32_t kElements[] = {COLLET_TYPE_F32,  COLLET_TYPE_S32, COLLET_TYPE_U8,   COLLET_TYPE_S64, COLLET_TYPE_F64,
                                  COLLET_TYPE_BF16, COLLET_TYPE_F16, COLLET_TYPE_PRED, COLLET_TYPE_U32, COLLET_TYPE_U64,
                                  COLLET_TYPE_S8,   COLLET_TYPE_S16, COLLET_TYPE_U16,  COLLET_TYPE_C64};

void exchange(Contract& c) {
  const auto instance = Instance::open(c, 3);
  if (!instance) return;
  const auto* table = instance->query<collet_exchange_table>("exchange");
  if (!table) return c.skip("the backend has no table \"exchange\"");
  if (!instance->executes()) return c.skip("the devices are virtual");
  const Devices devices{*instance, *table};
  const auto count = static_cast<uint32_t>(std::min<size_t>(instance->devices().size(), 3));
  std::vector<uint32_t> ascending(count);
  for (uint32_t d = 0; d < count; ++d) ascending[d] = d;
  const std::vector<uint32_t> descending(ascending.rbegin(), ascending.rend());
  bool any = false;
  for (const std::vector<uint32_t>& order : {ascending, descending}) {
    any |= run_trial(devices, copies_between(order));
    for (const uint32_t kind : {uint32_t{COLLET_EXCHANGE_ALL_REDUCE}, uint32_t{COLLET_EXCHANGE_REDUCE_SCATTER},
                                uint32_t{COLLET_EXCHANGE_ALL_GATHER}})
      for (const uint64_t elements : {uint64_t{1}, uint64_t{1000}, uint64_t{70001}})
        for (const uint32_t element : kElements)
          for (uint32_t combine = COLLET_COMBINE_ADD; combine <= COLLET_COMBINE_XOR; ++combine) {
            const bool gathers = kind == COLLET_EXCHANGE_ALL_GATHER;
            if (gathers ? combine != COLLET_COMBINE_ADD : !is_combined(element, combine)) continue;
            // The many elements are tried with the first types and combinations, which is enough to find a wrong division.
            if (elements > 1000 && (element != COLLET_TYPE_F32 && element != COLLET_TYPE_U8)) continue;
            Trial t;
            t.kind = kind;
            t.element = element;
            t.combine = gathers ? 0 : combine;
            t.count = elements;
            t.devices = order;
            hlo::is_integer(static_cast<hlo::Type>(element)) || element == COLLET_TYPE_PRED ? fill<int64_t>(t)
                                                                                            : fill<double>(t);
            any |= run_trial(devices, t);
            if (c.broken()) return;
          }
  }
  Trial unknown;
  unknown.kind = 1000;
  unknown.element = COLLET_TYPE_F32;
  unknown.count = 1;
  unknown.devices = ascending;
  std::vector<collet_exchange_member> members;
  for (const uint32_t device : ascending) members.push_back({0, device, {}, {}});
  const collet_exchange asked = describe(unknown, members);
  c.check(table->takes(instance->handle(), &asked) == 0, Promise::EXCHANGE_TAKES, "takes accepted kind 1000");
  if (!any && !c.broken()) c.skip("the devices take no exchange");
}

}  // namespace

void add_exchange_contracts(std::vector<ContractCase>& list) {
  list.push_back({"tables/exchange", exchange});
}

}  // namespace collet::conformance

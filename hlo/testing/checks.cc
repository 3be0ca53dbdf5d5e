// SPDX-License-Identifier: Apache-2.0
#include "hlo/testing/checks.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

namespace collet::hlo {
namespace {

constexpr std::string_view kPrefix = "check.";

bool is_check(const Instruction& instr) {
  return instr.op == Op::CUSTOM_CALL && instr.as<CustomCallAttrs>().target.starts_with(kPrefix);
}

/// Returns the number after `key = ` in the call's config.
std::optional<double> config_number(std::string_view config, std::string_view key) {
  const size_t at = config.find(std::string(key) + " = ");
  if (at == std::string_view::npos) return std::nullopt;
  return std::strtod(std::string(config.substr(at + key.size() + 3, 40)).c_str(), nullptr);
}

Expected<Check> read_check_call(const Instruction& instr) {
  const auto& attrs = instr.as<CustomCallAttrs>();
  const std::string_view config = instr.extras ? instr.extras->backend_config : attrs.config;
  const std::string_view name = attrs.target.substr(kPrefix.size());
  if (instr.operands.size() != 2)
    return invalid_argument(std::string(instr.name) + ": " + std::string(attrs.target) + " needs two operands");
  Check check;
  check.name = std::string(instr.name);
  if (name == "expect_eq") {
    check.kind = Check::Kind::Equal;
  } else if (name == "eq") {
    check.kind = Check::Kind::AlmostEqual;
    check.tolerance = 1e-4;
  } else if (name == "expect_almost_eq") {
    // The custom call of that name allows larger errors than the op of the check dialect.
    check.kind = Check::Kind::AlmostEqual;
    check.tolerance = config_number(config, "tolerance").value_or(config.empty() ? 1e-3 : 1e-4);
  } else if (name == "expect_close") {
    check.kind = Check::Kind::Close;
    check.max_ulp = static_cast<uint64_t>(config_number(config, "max_ulp_difference").value_or(3));
    check.min_ulp = static_cast<uint64_t>(config_number(config, "min_ulp_difference").value_or(0));
  } else {
    return unimplemented(std::string(instr.name) + ": the check " + std::string(name) + " is not known");
  }
  return check;
}

/// Returns the distance in representable values; the largest number if one value is finite and the other is not.
uint64_t ulp_distance(uint64_t a, uint64_t b, double va, double vb, int bits) {
  if (a == b || (std::isnan(va) && std::isnan(vb))) return 0;
  if (!std::isfinite(va) || !std::isfinite(vb)) return std::numeric_limits<uint64_t>::max();
  const uint64_t sign = uint64_t{1} << (bits - 1);
  const uint64_t x = a & (sign - 1), y = b & (sign - 1);
  if ((a & sign) != (b & sign)) return x + y;
  return x > y ? x - y : y - x;
}

struct Element {
  double parts[2];
  uint64_t bits[2];
  int count;
};

Element element_at(const Literal& literal, int64_t i) {
  Element out{};
  const TypeInfo& info = type_info(literal.type());
  out.count = is_complex(literal.type()) ? 2 : 1;
  const int bytes = info.bytes() / out.count;
  for (int p = 0; p < out.count; ++p)
    std::memcpy(&out.bits[p], literal.bytes() + i * info.bytes() + p * bytes, static_cast<size_t>(bytes));
  out.parts[0] = literal.as_double(i);
  out.parts[1] = literal.imaginary(i);
  return out;
}

bool agrees(const Check& check, const Literal& actual, const Literal& expected, int64_t i) {
  const Type type = actual.type();
  if (!is_float(type) && !is_complex(type)) return actual.as_int(i) == expected.as_int(i);
  const Element a = element_at(actual, i), b = element_at(expected, i);
  const int bits = type_info(type).bits / a.count;
  for (int p = 0; p < a.count; ++p) {
    const double x = a.parts[p], y = b.parts[p];
    switch (check.kind) {
      case Check::Kind::Equal:
        if (!(x == y) && a.bits[p] != b.bits[p]) return false;
        break;
      case Check::Kind::AlmostEqual:
        if (x == y || (std::isnan(x) && std::isnan(y))) break;
        if (!std::isfinite(x) || !std::isfinite(y) || std::fabs(x - y) > check.tolerance) return false;
        break;
      case Check::Kind::Close: {
        const uint64_t distance = ulp_distance(a.bits[p], b.bits[p], x, y, bits);
        if (distance > check.max_ulp) return false;
        break;
      }
    }
  }
  return true;
}

std::string text_at(const Literal& literal, int64_t i) {
  char buffer[80];
  if (is_complex(literal.type()))
    std::snprintf(buffer, sizeof buffer, "(%.17g, %.17g)", literal.as_double(i), literal.imaginary(i));
  else if (is_float(literal.type()))
    std::snprintf(buffer, sizeof buffer, "%.17g", literal.as_double(i));
  else
    std::snprintf(buffer, sizeof buffer, "%lld", static_cast<long long>(literal.as_int(i)));
  return buffer;
}

Expected<Check> read_check(const Module& module, const Instruction& instr) {
  COLLET_ASSIGN(Check check, read_check_call(instr));
  if (instr.as<CustomCallAttrs>().target == "check.eq" && !is_float(module[instr.operand(0)].shape.type()))
    check.kind = Check::Kind::Equal;
  return check;
}

/// Returns the value of a constant, or of a broadcast of a scalar constant.
std::optional<Literal> constant_value(const Module& module, InstrId id) {
  const Instruction& instr = module[id];
  if (instr.op == Op::CONSTANT) return module.literal(instr);
  if (instr.op != Op::BROADCAST || module[instr.operand(0)].op != Op::CONSTANT) return std::nullopt;
  const Literal& scalar = module.literal(module[instr.operand(0)]);
  if (scalar.element_count() != 1) return std::nullopt;
  Literal out = Literal::zeros(instr.shape.to_static());
  const auto bytes = static_cast<size_t>(type_info(out.type()).bytes());
  for (int64_t i = 0; i < out.element_count(); ++i)
    std::memcpy(out.mutable_bytes() + static_cast<size_t>(i) * bytes, scalar.bytes(), bytes);
  return out;
}

}  // namespace

Expected<std::vector<ExpectedResult>> expected_results(const Module& module) {
  const Computation& entry = module.entry_computation();
  std::vector<InstrId> leaves{entry.root};
  if (const Instruction& root = module[entry.root]; root.op == Op::TUPLE)
    leaves.assign(root.operands.begin(), root.operands.end());
  std::vector<ExpectedResult> out;
  for (InstrId id : entry.order) {
    if (!is_check(module[id])) continue;
    COLLET_ASSIGN(Check check, read_check(module, module[id]));
    for (size_t k : {0, 1}) {
      const std::optional<Literal> value = constant_value(module, module[id].operand(1 - k));
      for (size_t leaf = 0; value && leaf < leaves.size(); ++leaf)
        if (leaves[leaf] == module[id].operand(k)) out.push_back({check, leaf, *value});
    }
  }
  return out;
}

Expected<std::vector<Check>> lift_checks(Module& module) {
  std::vector<Check> checks;
  for (CompId c : module.computations()) {
    if (c == module.entry()) continue;
    for (InstrId id : module[c].order)
      if (is_check(module[id]))
        return unimplemented(std::string(module[id].name) + ": a check inside of a loop, branch or call");
  }
  Computation& entry = module.entry_computation();
  std::vector<InstrId> results, kept;
  for (InstrId id : entry.order) {
    const Instruction& instr = module[id];
    if (!is_check(instr)) {
      kept.push_back(id);
      continue;
    }
    COLLET_ASSIGN(Check check, read_check(module, instr));
    check.actual = results.size();
    check.expected = results.size() + 1;
    results.push_back(instr.operand(0));
    results.push_back(instr.operand(1));
    checks.push_back(std::move(check));
    // Users of a check's result get the value that means success.
    if (instr.shape.is_array()) {
      Literal yes = Literal::zeros(instr.shape.to_static());
      for (int64_t i = 0; i < yes.element_count(); ++i) yes.set_int(i, 1);
      Instruction& changed = module[id];
      changed.attrs = module.constant_attrs(std::move(yes));
      changed.op = Op::CONSTANT;
      changed.operands = {};
      changed.extras = nullptr;
      kept.push_back(id);
    }
  }
  if (checks.empty()) return checks;
  const bool drops_root = is_check(module[entry.root]);
  entry.order = std::move(kept);
  if (drops_root) entry.root = InstrId::None;
  std::vector<Shape> shapes;
  for (InstrId id : results) shapes.push_back(module[id].shape);
  entry.root = module.append(module.entry(), Op::TUPLE, Shape::tuple(std::move(shapes)), results);
  module.header().has_entry_layout = false;
  module.header().aliases.clear();
  module.header().donors.clear();
  return checks;
}

Status compare_check(const Check& check, const Literal& actual, const Literal& expected) {
  if (!actual.shape().compatible(expected.shape()))
    return invalid_argument(check.name + ": shapes differ: " + actual.shape().to_string() + " and " +
                            expected.shape().to_string());
  if (!actual.shape().is_array()) return {};
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < actual.element_count(); ++i) {
    if (agrees(check, actual, expected, i)) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (wrong == 0) return {};
  return invalid_argument(check.name + ": " + std::to_string(wrong) + " of " + std::to_string(actual.element_count()) +
                          " elements of " + actual.shape().to_string() + " differ, first number " +
                          std::to_string(first) + ": got " + text_at(actual, first) + ", expected " +
                          text_at(expected, first));
}

}  // namespace collet::hlo

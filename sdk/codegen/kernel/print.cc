// SPDX-License-Identifier: Apache-2.0
#include <collet/codegen/kernel_text.h>

#include <cstring>
#include <string_view>

#include "sdk/codegen/kernel/literal.h"
#include "sdk/codegen/kernel/names.h"

namespace collet::codegen {
namespace {

std::string number(int64_t x) {
  return std::to_string(x);
}

std::string expr_name(ExprId id) {
  return id == kNoExpr ? "identity" : "%" + number(id);
}

template <size_t N>
std::string name_in(const std::array<std::string_view, N>& names, int64_t value) {
  const bool known = value >= 0 && value < static_cast<int64_t>(N);
  return known ? std::string(names[static_cast<size_t>(value)]) : "?" + number(value);
}

std::string if_mask(ExprId mask) {
  return mask == kNoExpr ? "" : " if " + expr_name(mask);
}

/// Prints an index as a sum: loop variables, computed terms, the constant.
std::string print_index(const Index& index) {
  std::string out;
  const auto add = [&out](int64_t c, const std::string& of) {
    const bool negative = c < 0;
    if (out.empty()) {
      if (negative) out = "-";
    } else {
      out += negative ? " - " : " + ";
    }
    const uint64_t size = negative ? 0 - static_cast<uint64_t>(c) : static_cast<uint64_t>(c);
    if (of.empty()) {
      out += std::to_string(size);
    } else {
      out += (size == 1 ? std::string() : std::to_string(size) + "*") + of;
    }
  };
  for (size_t l = 0; l < index.coefficients.size(); ++l) {
    if (index.coefficients[l] != 0) add(index.coefficients[l], "i" + std::to_string(l));
  }
  for (auto [id, c] : index.terms) add(c, "%" + number(id));
  if (index.constant != 0 || out.empty()) add(index.constant, "");
  return out;
}

std::string print_table(const Expr& e) {
  const size_t bytes = std::max<size_t>(collet_type_bytes(e.type), 1);
  std::string out = "{";
  for (size_t at = 0; at + bytes <= e.table.size(); at += bytes) {
    std::array<uint64_t, 2> bits{};
    std::memcpy(bits.data(), e.table.data() + at, std::min(bytes, sizeof bits));
    out += (at == 0 ? "" : ", ") + print_element(e.type, bits);
  }
  return out + "}";
}

/// Writes a kernel or a body, line by line.
class Printer {
 public:
  std::string take() { return std::move(out_); }

  void kernel(const Kernel& k);
  void expr(const Expr& e, ExprId id);

 private:
  void line(const std::string& text) { out_ += std::string(2 * depth_, ' ') + text + "\n"; }
  void exprs(const Kernel& k);
  void body(const ScalarBody& b, const std::string& head);
  void print_reduction(const Reduction& r, const std::string& head, const std::string& flags);
  void store(const Store& s);
  void update(const Update& u);
  /// Prints expressions with their types, such as "f32 %1, s32 %2".
  static std::string typed(const std::vector<uint32_t>& types, const std::vector<ExprId>& values);

  std::string out_;
  size_t depth_ = 0;
};

std::string Printer::typed(const std::vector<uint32_t>& types, const std::vector<ExprId>& values) {
  std::string out;
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t type = i < types.size() ? types[i] : 0;
    out += (i == 0 ? "" : ", ") + std::string(collet_type_name(type)) + " " + expr_name(values[i]);
  }
  return out;
}

void Printer::body(const ScalarBody& b, const std::string& head) {
  line(head + " (" + std::to_string(b.arguments) + ") {");
  ++depth_;
  for (size_t k = 0; k < b.exprs.size(); ++k) expr(b.exprs[k], static_cast<ExprId>(k));
  std::string results;
  for (ExprId r : b.results) results += (results.empty() ? " " : ", ") + expr_name(r);
  line("yield" + results);
  --depth_;
  line("}");
}

void Printer::expr(const Expr& e, ExprId id) {
  const std::string type = collet_type_name(e.type);
  const std::string head = "%" + number(id) + " = ";
  std::string args;
  for (ExprId a : e.args) args += (args.empty() ? "" : ", ") + expr_name(a);
  switch (e.op) {
    case ExprOp::kConstant:
      return line(head + "constant " + type + " " + print_element(e.type, e.bits));
    case ExprOp::kLoad:
      return line(head + "load " + type + " b" + std::to_string(e.buffer) + "[" + print_index(e.index) + "]" +
                  if_mask(e.mask));
    case ExprOp::kIndex:
      return line(head + "index " + print_index(e.index));
    case ExprOp::kDivide:
    case ExprOp::kModulo:
      return line(head + (e.op == ExprOp::kDivide ? "quotient (" : "modulo (") + print_index(e.index) + ") by " +
                  number(e.a));
    case ExprOp::kStart:
      return line(head + "start " + args + " limit " + number(e.a));
    case ExprOp::kInRange:
      return line(head + "in_range (" + print_index(e.index) + ") below " + number(e.a));
    case ExprOp::kOp: {
      std::string tail;
      if (e.opcode == COLLET_OP_COMPARE) {
        tail = " " + name_in(kDirectionNames, e.a) + " " + name_in(kCompareNames, e.b);
      } else if (e.opcode == COLLET_OP_REDUCE_PRECISION) {
        tail = " exponent " + number(e.a) + " mantissa " + number(e.b);
      }
      return line(head + collet_op_name(e.opcode) + " " + type + " " + args + tail);
    }
    case ExprOp::kArgument:
      return line(head + "argument " + type + " " + number(e.a));
    case ExprOp::kLookup:
      return line(head + "lookup " + type + " [" + print_index(e.index) + "]" + if_mask(e.mask) + " in " +
                  print_table(e));
    case ExprOp::kWhile:
      line(head + "while " + type + " " + args + if_mask(e.mask) + " {");
      ++depth_;
      for (size_t b = 0; b < e.bodies.size(); ++b) body(e.bodies[b], b == 0 ? "condition" : "body");
      --depth_;
      return line("}");
    case ExprOp::kPart:
      return line(head + "part " + type + " " + args + " result " + number(e.a) + " field " + number(e.b));
    case ExprOp::kReduced:
      return line(head + "reduced " + type + " r" + number(e.b) + " result " + number(e.a));
    case ExprOp::kScanned:
      return line(head + "scanned " + type + " result " + number(e.a));
  }
  line(head + "?");
}

void Printer::print_reduction(const Reduction& r, const std::string& head, const std::string& flags) {
  std::string text = head + name_in(kCombineNames, r.combine) + " " + typed(r.types, r.inputs);
  text += " init ";
  for (size_t i = 0; i < r.inits.size(); ++i) text += (i == 0 ? "" : ", ") + expr_name(r.inits[i]);
  text += if_mask(r.condition) + (r.contract ? " contract" : "") + (r.tf32 ? " tf32" : "") + flags;
  if (r.combine == COLLET_COMBINE_OTHER) {
    body(r.body, text + " body");
  } else {
    line(text);
  }
}

void Printer::exprs(const Kernel& k) {
  std::vector<bool> done(k.reductions.size(), false);
  bool scanned = false;
  const auto reduction = [&](size_t r) {
    if (r >= done.size() || done[r]) return;
    done[r] = true;
    print_reduction(k.reductions[r], "r" + std::to_string(r) + " = reduce ", "");
  };
  const auto scan = [&] {
    if (!k.scan || scanned) return;
    scanned = true;
    print_reduction(k.scan->reduction, "scan ",
                    std::string(k.scan->reverse ? " reverse" : "") + (k.scan->fresh ? " fresh" : ""));
  };
  // A reduction is printed before the expressions that use its results.
  for (size_t i = 0; i < k.exprs.size(); ++i) {
    const Expr& e = k.exprs[i];
    if (e.op == ExprOp::kReduced && e.b >= 0) reduction(static_cast<size_t>(e.b));
    if (e.op == ExprOp::kScanned) scan();
    expr(e, static_cast<ExprId>(i));
  }
  for (size_t r = 0; r < k.reductions.size(); ++r) reduction(r);
  scan();
}

void Printer::store(const Store& s) {
  line("store b" + std::to_string(s.buffer) + "[" + print_index(s.index) + "], " + expr_name(s.value) +
       if_mask(s.mask) + (s.bypasses_caches ? " past caches" : ""));
}

void Printer::update(const Update& u) {
  std::string text = "update " + name_in(kCombineNames, u.combine) + " ";
  for (size_t i = 0; i < u.buffers.size(); ++i) text += (i == 0 ? "b" : ", b") + std::to_string(u.buffers[i]);
  text += " [" + print_index(u.index) + "] " + typed(u.types, u.values) + if_mask(u.mask);
  if (u.combine == COLLET_COMBINE_OTHER) {
    body(u.body, text + " body");
  } else {
    line(text);
  }
}

/// Returns what the schedule says of a loop, besides its lanes.
std::string how_loop_runs(const Loop& l) {
  std::string out;
  if (l.kind == LoopKind::kUnroll) out = " unroll";
  if (l.kind == LoopKind::kInterleave) out = " interleave " + number(l.factor);
  if (l.kind == LoopKind::kTranspose) out = " transpose";
  return out + (l.strip != 0 ? " strip " + number(l.strip) : "");
}

void Printer::kernel(const Kernel& k) {
  line("kernel (" + std::to_string(k.buffers) + (k.buffers == 1 ? " buffer)" : " buffers)") +
       (k.sequential ? " sequential" : "") + (k.in_parts ? " in_parts" : "") + (k.scalable ? " scalable" : "") +
       (k.unordered ? " unordered" : "") + " {");
  ++depth_;
  for (size_t l = 0; l < k.loops.size(); ++l) {
    const bool in_lanes = l == k.lane_loop && (l > 0 || k.lanes != 1);
    line((l < k.outer ? "outer i" : "inner i") + std::to_string(l) + ": " + number(k.loops[l].size) +
         (in_lanes ? " lanes " + number(k.lanes) : "") + how_loop_runs(k.loops[l]));
  }
  if (!k.loops.empty() && k.lane_loop == k.loops.size()) line("no lanes");
  for (size_t i = 0; i < k.passes.size(); ++i)
    line("pass " + std::to_string(i) + ": lanes " + number(k.passes[i].lanes) + " together " +
         number(k.passes[i].together));
  if (!k.kept.empty()) {
    std::string text;
    for (const ExprId e : k.kept) text += (text.empty() ? "keep " : ", ") + expr_name(e);
    line(text);
  }
  exprs(k);
  for (const Store& s : k.stores) store(s);
  for (const Update& u : k.updates) update(u);
  --depth_;
  line("}");
}

}  // namespace

std::string print_kernel(const Kernel& kernel) {
  Printer printer;
  printer.kernel(kernel);
  return printer.take();
}

std::string print_expr(const Kernel& kernel, ExprId id) {
  if (id < 0 || static_cast<size_t>(id) >= kernel.exprs.size()) return expr_name(id);
  Printer printer;
  printer.expr(kernel.exprs[static_cast<size_t>(id)], id);
  std::string text = printer.take();
  return text.substr(0, text.find('\n'));
}

}  // namespace collet::codegen

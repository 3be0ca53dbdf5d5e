// SPDX-License-Identifier: Apache-2.0
#include "conformance/mutants/faulty.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string_view>
#include <thread>

#include "conformance/mutants/find_op.h"

namespace collet::mutants {

std::atomic<int> released{0};
namespace {

std::atomic<int> compiles{0};
std::atomic<int> open_executables{0};
constexpr int kFewExecutables = 40;

// Executables by program, for the fault that returns the same handle for equal programs.
std::map<std::string, Executable*> by_program;

}  // namespace

collet_status supports(collet_backend_instance* p, uint32_t device, const collet_program* program, const uint32_t* ops,
                       uint32_t count, collet_verdict* verdicts, collet_error* error) {
  static std::atomic<int> questions{0};
  Instance* self = of(p);
  if (is_lost() && is(Fault::loss_stops_compile)) return lost(error);
  if (is(Fault::supports_writes_block)) const_cast<collet_program*>(program)->flags = 0;
  if (is(Fault::supports_reads_beyond)) {
    volatile char last = reinterpret_cast<const char*>(program)[program->total_bytes + 8];
    (void)last;
  }
  if (is(Fault::questions_leak)) leave();
  const bool compiled = is(Fault::supports_depends_on_compile) && compiles > 0;
  const collet_status code = behind->supports(self->inner, device, program, ops, count, verdicts, error);
  if (code != COLLET_OK) return code;
  const int question = questions++;
  static const std::thread::id first_thread = std::this_thread::get_id();
  const bool is_elsewhere = is(Fault::verdict_answer_depends_on_thread) && std::this_thread::get_id() != first_thread;
  const bool is_full = is(Fault::supports_declines_beside_buffers) && self->buffers.size() > 4;
  const bool has_run = is(Fault::supports_changes_after_runs) && self->runs > 0;
  for (uint32_t i = 0; i < count; ++i) {
    const collet_op* op = collet_op_at(program, ops[i]);
    if ((is_full || has_run) && op->opcode == COLLET_OP_MULTIPLY) verdicts[i].answer = COLLET_DECLINE;
    if (is_elsewhere && op->opcode == COLLET_OP_MULTIPLY) verdicts[i].answer = COLLET_DECLINE;
    if (is(Fault::verdict_cost_nan)) verdicts[i].cost_ns = std::numeric_limits<double>::quiet_NaN();
    if (compiled && op->opcode == COLLET_OP_MULTIPLY) verdicts[i].answer = COLLET_DECLINE;
    if (op->since > COLLET_OPSET) verdicts[i].answer = is(Fault::newer_op_accepted) ? COLLET_ACCEPT : COLLET_DECLINE;
    if (is(Fault::supports_changes_answer) && question % 5 == 4) verdicts[i].answer = COLLET_DECLINE;
    if (is(Fault::supports_depends_on_count) && count == 1 && op->opcode == COLLET_OP_MULTIPLY)
      verdicts[i].answer = COLLET_DECLINE;
    if (is(Fault::supports_depends_on_order) && i == 0 && count > 2) verdicts[i].answer = COLLET_DECLINE;
    if (is(Fault::supports_depends_on_address) && reinterpret_cast<uintptr_t>(program) % 64 != 0)
      verdicts[i].answer = COLLET_DECLINE;
    if (is(Fault::verdict_unknown)) verdicts[i].answer = 7;
    if (is(Fault::verdict_reason_endless)) std::memset(verdicts[i].reason, 'x', sizeof verdicts[i].reason);
    if (is(Fault::verdict_reserved_set)) verdicts[i].reserved = 3;
    if (is(Fault::verdict_cost_negative)) verdicts[i].cost_ns = -4;
    if (is(Fault::supports_cost_drifts)) verdicts[i].cost_ns = question;
  }
  if (is(Fault::supports_one_too_many)) verdicts[count].answer = COLLET_ACCEPT;
  return COLLET_OK;
}

namespace {

uint32_t* ref(collet_program* program, const collet_op* op, uint32_t operand) {
  return at<uint32_t>(program, program->refs, op->operands.first + operand);
}

bool is_scalar(const collet_program* program, uint32_t value) {
  return collet_value_type(program, value)->dims.count == 0;
}

bool is_made_by(const collet_program* program, uint32_t value, uint32_t opcode) {
  const collet_value* v = collet_value_at(program, value);
  return !(v->flags & COLLET_VALUE_ARGUMENT) && collet_op_at(program, v->definition)->opcode == opcode;
}

// True if the value is a scalar or a row that is broadcast to all elements.
bool is_spread(const collet_program* program, uint32_t value) {
  return is_made_by(program, value, COLLET_OP_BROADCAST) || is_made_by(program, value, COLLET_OP_CONSTANT) ||
         is_made_by(program, value, COLLET_OP_RESHAPE);
}

// Makes all users of the op's result in the region read its operand `kept` instead.
void bypass(collet_program* program, const collet_region* region, const collet_op* op, uint32_t kept) {
  const uint32_t from = op->results.first, to = collet_operand(program, op, kept);
  const auto replace = [&](uint32_t place) {
    if (uint32_t* one = at<uint32_t>(program, program->refs, place); *one == from) *one = to;
  };
  for (uint32_t i = 0; i < region->ops.count; ++i) {
    const collet_range operands = collet_op_at(program, region->ops.first + i)->operands;
    for (uint32_t k = 0; k < operands.count; ++k) replace(operands.first + k);
  }
  for (uint32_t k = 0; k < region->results.count; ++k) replace(region->results.first + k);
}

// Returns which operand of an op in the pattern's region replaces the op's result under this fault; 2 if the op is
// unchanged.
uint32_t kept_operand(const collet_program* program, const collet_region* region, const collet_op* op,
                      std::string_view pattern) {
  if (op->operands.count != 2) return 2;
  const uint32_t a = collet_operand(program, op, 0), b = collet_operand(program, op, 1);
  const bool is_root = op->results.first == collet_ref_at(program, region->results.first);
  const uint32_t other = is_spread(program, a) ? 1 : 0;
  const bool norm = pattern == "layer_norm" || pattern == "rms_norm";
  if (op->opcode == COLLET_OP_SUBTRACT && (pattern == "softmax" || pattern == "attention") &&
      (is(Fault::softmax_unshifted) || is(Fault::attention_unshifted)))
    return 0;
  if (op->opcode == COLLET_OP_ADD && norm && !is_root &&
      (is(Fault::layer_norm_without_epsilon) || is(Fault::rms_norm_without_epsilon)))
    return other;
  if (op->opcode == COLLET_OP_ADD && is_root && is(Fault::layer_norm_without_shift)) return other;
  if (op->opcode == COLLET_OP_MULTIPLY && is_root && pattern == "rms_norm" && is(Fault::rms_norm_without_scale))
    return other;
  if (op->opcode == COLLET_OP_MULTIPLY && is_root && is(Fault::silu_gate_without_gate))
    return is_made_by(program, a, COLLET_OP_MULTIPLY) ? 0 : 1;
  if (op->opcode == COLLET_OP_MULTIPLY && pattern == "attention" && is(Fault::attention_without_scale)) return other;
  if (op->opcode == COLLET_OP_ADD && pattern == "attention" && is(Fault::attention_without_mask))
    return collet_value_at(program, b)->flags & COLLET_VALUE_ARGUMENT ? 0 : 1;
  if (op->opcode == COLLET_OP_MULTIPLY && is_root && pattern == "quantized_dot" &&
      is(Fault::quantized_dot_without_scale))
    return other;
  return 2;
}

// What a fault of a quantized pattern changes in its region.
enum class Change {
  RoundsAway,
  RoundsDown,
  NoZeroPoint,
  NoOperandZeroPoint,
  NoClamp,
  NoChannels,
  NoBias,
  NoScale,
  NoRelu
};
struct QuantizedFault {
  Fault fault;
  std::string_view pattern;
  Change change;
};
constexpr QuantizedFault kQuantizedFaults[] = {
    {Fault::quantize_rounds_away, "quantize", Change::RoundsAway},
    {Fault::quantize_rounds_down, "quantize", Change::RoundsDown},
    {Fault::quantize_without_zero_point, "quantize", Change::NoZeroPoint},
    {Fault::quantize_without_clamp, "quantize", Change::NoClamp},
    {Fault::requantize_rounds_away, "requantize", Change::RoundsAway},
    {Fault::requantize_rounds_down, "requantize", Change::RoundsDown},
    {Fault::requantize_without_zero_point, "requantize", Change::NoZeroPoint},
    {Fault::requantize_without_clamp, "requantize", Change::NoClamp},
    {Fault::integer_dot_rounds_away, "integer_dot", Change::RoundsAway},
    {Fault::integer_dot_without_zero_point, "integer_dot", Change::NoZeroPoint},
    {Fault::integer_dot_without_operand_zero_points, "integer_dot", Change::NoOperandZeroPoint},
    {Fault::unstated_operand_zero_points_ignored, "integer_dot", Change::NoOperandZeroPoint},
    {Fault::unstated_channels_ignored, "integer_dot", Change::NoChannels},
    {Fault::integer_convolution_without_operand_zero_points, "integer_convolution", Change::NoOperandZeroPoint},
    {Fault::unstated_operand_zero_points_ignored, "integer_convolution", Change::NoOperandZeroPoint},
    {Fault::unstated_operand_zero_points_ignored, "integer_add", Change::NoOperandZeroPoint},
    {Fault::integer_dot_without_clamp, "integer_dot", Change::NoClamp},
    {Fault::integer_dot_without_bias, "integer_dot", Change::NoBias},
    {Fault::integer_dot_without_scale, "integer_dot", Change::NoScale},
    {Fault::integer_dot_without_relu, "integer_dot", Change::NoRelu},
    {Fault::integer_convolution_rounds_away, "integer_convolution", Change::RoundsAway},
    {Fault::integer_convolution_without_zero_point, "integer_convolution", Change::NoZeroPoint},
    {Fault::integer_convolution_without_clamp, "integer_convolution", Change::NoClamp},
    {Fault::integer_convolution_without_bias, "integer_convolution", Change::NoBias},
    {Fault::integer_add_rounds_away, "integer_add", Change::RoundsAway},
    {Fault::integer_add_without_zero_point, "integer_add", Change::NoZeroPoint},
    {Fault::integer_add_without_clamp, "integer_add", Change::NoClamp},
    {Fault::integer_add_without_scale, "integer_add", Change::NoScale},
    {Fault::integer_add_without_relu, "integer_add", Change::NoRelu},
    {Fault::scaled_dot_rounds_away, "scaled_dot", Change::RoundsAway},
    {Fault::scaled_dot_without_zero_point, "scaled_dot", Change::NoZeroPoint},
    {Fault::scaled_dot_without_scale, "scaled_dot", Change::NoScale},
    {Fault::scaled_convolution_without_zero_point, "scaled_convolution", Change::NoZeroPoint},
    {Fault::dequantized_dot_without_zero_point, "dequantized_dot", Change::NoZeroPoint},
    {Fault::dequantized_dot_without_scale, "dequantized_dot", Change::NoScale},
    {Fault::quantized_attention_without_scale, "quantized_attention", Change::NoScale},
};

// True if the value is the same number everywhere.
bool is_number(const collet_program* program, uint32_t value) {
  if (is_made_by(program, value, COLLET_OP_CONSTANT)) return true;
  if (!is_made_by(program, value, COLLET_OP_BROADCAST)) return false;
  const collet_op* broadcast = collet_op_at(program, collet_value_at(program, value)->definition);
  return is_made_by(program, collet_operand(program, broadcast, 0), COLLET_OP_CONSTANT);
}

// True if the value is an array of some dimensions of the op's, spread over the others.
bool is_of_channels(const collet_program* program, uint32_t value) {
  if (!is_made_by(program, value, COLLET_OP_BROADCAST)) return false;
  const collet_op* broadcast = collet_op_at(program, collet_value_at(program, value)->definition);
  return collet_value_type(program, collet_operand(program, broadcast, 0))->elements > 1;
}

// True if the value is a conversion of integers of 8 bits.
bool is_widened(const collet_program* program, uint32_t value) {
  if (!is_made_by(program, value, COLLET_OP_CONVERT)) return false;
  const collet_op* convert = collet_op_at(program, collet_value_at(program, value)->definition);
  return collet_type_bytes(collet_value_type(program, collet_operand(program, convert, 0))->element) == 1;
}

// Makes the change in one op of a pattern's region.
void change_quantized(collet_program* program, const collet_region* region, collet_op* op, Change change) {
  const bool rounds = op->opcode == COLLET_OP_ROUND_NEAREST_EVEN;
  if (change == Change::RoundsAway && rounds) op->opcode = COLLET_OP_ROUND_NEAREST_AFZ;
  if (change == Change::RoundsDown && rounds) op->opcode = COLLET_OP_FLOOR;
  if (change == Change::NoClamp && op->opcode == COLLET_OP_CLAMP) bypass(program, region, op, 1);
  if (op->operands.count != 2) return;
  const uint32_t a = collet_operand(program, op, 0), b = collet_operand(program, op, 1);
  const uint32_t kept = is_spread(program, a) ? 1 : 0, other = kept ? a : b;
  const bool sum = op->opcode == COLLET_OP_ADD || op->opcode == COLLET_OP_SUBTRACT;
  // Weights of groups have zero points that differ, which are subtracted.
  const bool zero = sum && (is_number(program, other) || op->opcode == COLLET_OP_SUBTRACT);
  const bool bias = op->opcode == COLLET_OP_ADD && is_spread(program, other) && !is_number(program, other);
  const bool widened = is_widened(program, kept ? b : a);
  if ((change == Change::NoZeroPoint && zero) || (change == Change::NoOperandZeroPoint && zero && widened) ||
      (change == Change::NoBias && bias) ||
      (change == Change::NoScale && op->opcode == COLLET_OP_MULTIPLY && is_spread(program, other)) ||
      (change == Change::NoChannels && op->opcode == COLLET_OP_MULTIPLY && is_of_channels(program, other)) ||
      (change == Change::NoRelu && op->opcode == COLLET_OP_MAXIMUM && is_number(program, other)))
    bypass(program, region, op, kept);
}

// Changes the regions of patterns, according to the fault.
void change_patterns(collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    const collet_op* call = collet_op_at(program, i);
    const std::string name = pattern_of(program, call);
    if (name.empty()) continue;
    const collet_region* region = collet_region_at(program, call->regions.first);
    for (uint32_t k = 0; k < region->ops.count; ++k) {
      const collet_op* op = collet_op_at(program, region->ops.first + k);
      const uint32_t kept = kept_operand(program, region, op, name);
      if (kept < 2) bypass(program, region, op, kept);
      for (const QuantizedFault& one : kQuantizedFaults)
        if (one.pattern == name && is(one.fault))
          change_quantized(program, region, at<collet_op>(program, program->ops, region->ops.first + k), one.change);
    }
  }
}

}  // namespace

std::string pattern_of(const collet_program* program, const collet_op* op) {
  if (op->opcode != COLLET_OP_CALL) return {};
  collet_call_attrs attrs;
  collet_read_attributes(program, op, &attrs, sizeof attrs);
  return {collet_string(program, attrs.name), attrs.name.count};
}

namespace {

// Changes the regions of fusions, according to the fault.
void change_fusions(collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    const collet_op* fusion = collet_op_at(program, i);
    if (fusion->opcode != COLLET_OP_FUSION) continue;
    const collet_region* region = collet_region_at(program, fusion->regions.first);
    const auto used_by = [&](const collet_op* op, uint32_t opcode) {
      for (uint32_t k = 0; k < region->ops.count; ++k) {
        const collet_op* user = collet_op_at(program, region->ops.first + k);
        for (uint32_t o = 0; user->opcode == opcode && o < user->operands.count; ++o)
          if (collet_operand(program, user, o) == op->results.first) return true;
      }
      return false;
    };
    uint32_t arithmetic = 0;
    for (uint32_t k = 0; k < region->ops.count; ++k) {
      auto* op = at<collet_op>(program, program->ops, region->ops.first + k);
      const bool binary = op->operands.count == 2 && op->opcode != COLLET_OP_DOT && op->opcode != COLLET_OP_REDUCE;
      arithmetic += binary;
      if (is(Fault::fusion_subtracts_before_relu) && op->opcode == COLLET_OP_ADD && used_by(op, COLLET_OP_MAXIMUM))
        op->opcode = COLLET_OP_SUBTRACT;
      const bool reduced = used_by(op, COLLET_OP_REDUCE), subtract = op->opcode == COLLET_OP_SUBTRACT;
      const bool after = binary && (is_made_by(program, collet_operand(program, op, 0), COLLET_OP_DOT) ||
                                    is_made_by(program, collet_operand(program, op, 1), COLLET_OP_DOT));
      if (subtract &&
          ((is(Fault::fusion_swaps_before_reduction) && reduced) || (is(Fault::fusion_swaps_after_product) && after)))
        std::swap(*ref(program, op, 0), *ref(program, op, 1));
      if (is(Fault::fusion_ignores_row) && binary && op->opcode != COLLET_OP_BROADCAST) {
        const uint32_t b = collet_operand(program, op, 1);
        const bool row =
            is_made_by(program, b, COLLET_OP_BROADCAST) &&
            !is_scalar(program,
                       collet_operand(program, collet_op_at(program, collet_value_at(program, b)->definition), 0));
        if (row) bypass(program, region, op, 0);
      }
      if (is(Fault::fusion_third_op_missing) && arithmetic == 3 && binary) bypass(program, region, op, 0);
    }
    if (is(Fault::fusion_second_result_is_first) && region->results.count == 2)
      *at<uint32_t>(program, program->refs, region->results.first + 1) = collet_ref_at(program, region->results.first);
  }
}

void set_direction(collet_program* program, const collet_op* compare, uint32_t direction) {
  collet_compare_attrs attrs;
  collet_read_attributes(program, compare, &attrs, sizeof attrs);
  attrs.direction = direction;
  std::memcpy(reinterpret_cast<char*>(program) + program->records.offset + compare->record, &attrs,
              std::min<size_t>(compare->record_bytes, sizeof attrs));
}

// Replaces a comparator that is walked by "less" of the first operand's elements, and each selection by that of the largest.
void change_regions(collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    const collet_op* op = collet_op_at(program, i);
    const bool sorts = op->opcode == COLLET_OP_SORT && is(Fault::sort_knows_less_alone),
               selects = op->opcode == COLLET_OP_SELECT_AND_SCATTER && is(Fault::select_takes_the_largest);
    if (!sorts && !selects) continue;
    const collet_region* region = collet_region_at(program, op->regions.first);
    if (sorts && region->combine != COLLET_COMBINE_OTHER) continue;
    for (uint32_t k = 0; k < region->ops.count; ++k) {
      const collet_op* compare = collet_op_at(program, region->ops.first + k);
      const auto element_of = [&](uint32_t value) { return collet_value_type(program, value)->element; };
      if (compare->opcode != COLLET_OP_COMPARE ||
          element_of(collet_operand(program, compare, 0)) != element_of(region->arguments.first))
        continue;
      set_direction(program, compare, selects ? COLLET_DIRECTION_GE : COLLET_DIRECTION_LT);
      if (selects) break;
      *ref(program, compare, 0) = region->arguments.first;
      *ref(program, compare, 1) = region->arguments.first + 1;
      *at<uint32_t>(program, program->refs, region->results.first) = compare->results.first;
      break;
    }
  }
}

// Changes control-flow ops, according to the fault.
void change_control(collet_program* program) {
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    const collet_op* op = collet_op_at(program, i);
    if ((op->opcode == COLLET_OP_ALL_REDUCE || op->opcode == COLLET_OP_REDUCE_SCATTER) &&
        is(Fault::collectives_add_always)) {
      const collet_region* region = collet_region_at(program, op->regions.first);
      auto* body = at<collet_op>(program, program->ops, region->ops.first);
      const uint32_t kind = collet_type_kind(collet_value_type(program, body->results.first)->element);
      if (kind != COLLET_KIND_PRED) body->opcode = COLLET_OP_ADD;
    }
    if (op->opcode == COLLET_OP_ALL_REDUCE && is(Fault::groups_of_one))
      bypass(program, collet_region_at(program, 0), op, 0);
    if (op->regions.count == 0) continue;
    auto* first = at<collet_region>(program, program->regions, op->regions.first);
    auto* last = at<collet_region>(program, program->regions, op->regions.first + op->regions.count - 1);
    if (op->opcode == COLLET_OP_WHILE && is(Fault::loop_runs_once_more)) {
      // Finds the comparison in the condition, which is one of the two regions.
      for (uint32_t r = 0; r < 2; ++r) {
        const collet_region* region = collet_region_at(program, op->regions.first + r);
        for (uint32_t k = 0; region->results.count == 1 && k < region->ops.count; ++k) {
          const collet_op* compare = collet_op_at(program, region->ops.first + k);
          if (compare->opcode != COLLET_OP_COMPARE) continue;
          set_direction(program, compare, COLLET_DIRECTION_LE);
        }
      }
    }
    // Two state values that are exchanged: the second one gets the new value of the first.
    if (op->opcode == COLLET_OP_WHILE && is(Fault::loop_overwrites_state) && last->results.count > 2)
      *at<uint32_t>(program, program->refs, last->results.first + 1) = collet_ref_at(program, last->results.first + 2);
    if (op->opcode == COLLET_OP_CONDITIONAL && is(Fault::branches_swapped)) {
      std::swap(first->ops, last->ops);
      std::swap(first->arguments, last->arguments);
      std::swap(first->results, last->results);
    }
    if (op->opcode == COLLET_OP_CALL && is(Fault::call_swaps_results) && first->results.count == 2)
      std::swap(*at<uint32_t>(program, program->refs, first->results.first),
                *at<uint32_t>(program, program->refs, first->results.first + 1));
  }
}

// Changes the program itself, for faults that are those of a kernel.
void change(collet_program* program) {
  change_patterns(program);
  change_control(program);
  change_fusions(program);
  change_regions(program);
  if (is(Fault::large_constant_cut) && program->data.count > 4096)
    std::memset(reinterpret_cast<char*>(program) + program->data.offset + 4096, 0, program->data.count - 4096);
  for (uint32_t i = 0; i < program->ops.count; ++i) {
    auto* op = at<collet_op>(program, program->ops, i);
    const bool entry = i < collet_region_at(program, 0)->ops.first + collet_region_at(program, 0)->ops.count &&
                       i >= collet_region_at(program, 0)->ops.first;
    const uint32_t first = op->operands.count ? collet_operand(program, op, 0) : 0;
    const collet_value* operand = collet_value_at(program, first);
    const bool of_product = op->operands.count == 2 && !(operand->flags & COLLET_VALUE_ARGUMENT) &&
                            collet_op_at(program, operand->definition)->opcode == COLLET_OP_MULTIPLY;
    if (is(Fault::fusion_subtracts) && !entry && op->opcode == COLLET_OP_ADD && of_product)
      op->opcode = COLLET_OP_SUBTRACT;
    if (is(Fault::fusion_swaps_operands) && !entry && op->opcode == COLLET_OP_SUBTRACT)
      std::swap(*ref(program, op, 0), *ref(program, op, 1));
    if (is(Fault::fusion_swaps_division) && !entry && op->opcode == COLLET_OP_DIVIDE)
      std::swap(*ref(program, op, 0), *ref(program, op, 1));
    if (is(Fault::fusion_takes_minimum) && !entry && op->opcode == COLLET_OP_MAXIMUM) op->opcode = COLLET_OP_MINIMUM;
    if (is(Fault::fusion_swaps_choice) && !entry && op->opcode == COLLET_OP_SELECT)
      std::swap(*ref(program, op, 1), *ref(program, op, 2));
    if (is(Fault::fusion_drops_negate) && !entry && op->opcode == COLLET_OP_NEGATE) op->opcode = COLLET_OP_ABS;
    if (is(Fault::fusion_swaps_clamp) && !entry && op->opcode == COLLET_OP_CLAMP)
      std::swap(*ref(program, op, 0), *ref(program, op, 2));
    if (is(Fault::fusion_compares_otherwise) && !entry && op->opcode == COLLET_OP_COMPARE)
      std::swap(*ref(program, op, 0), *ref(program, op, 1));
    if (is(Fault::clamp_ignores_scalar_bound) && op->opcode == COLLET_OP_CLAMP && is_scalar(program, first))
      *ref(program, op, 2) = first;
    // The scalar predicate is treated as true: the second operand replaces the third.
    if (is(Fault::select_ignores_scalar) && op->opcode == COLLET_OP_SELECT && is_scalar(program, first) &&
        !is_scalar(program, op->results.first))
      *ref(program, op, 2) = collet_operand(program, op, 1);
  }
}

// Uses the attributes, or the constants, of the first program that was otherwise equal.
void take_earlier(Executable& made) {
  if (!is(Fault::attributes_mixed_up) && !is(Fault::constants_mixed_up)) return;
  auto* program = reinterpret_cast<collet_program*>(made.block.data());
  const collet_array& array = is(Fault::attributes_mixed_up) ? program->records : program->data;
  char* part = reinterpret_cast<char*>(program) + array.offset;
  const std::string value(part, size_t{array.count} * array.stride);
  std::memset(part, 0, value.size());
  auto* bytes = reinterpret_cast<char*>(program);
  collet_array constants = program->constants;  // the table of constants, including the ids of their contents
  std::string key(bytes, program->total_bytes);
  std::memset(key.data() + constants.offset, 0, size_t{constants.count} * constants.stride);
  static std::map<std::string, std::string> seen;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const std::string& first = seen.emplace(key, value).first->second;
  std::memcpy(part, first.data(), first.size());
}

}  // namespace

void describe(Executable& made) {
  const auto* program = reinterpret_cast<const collet_program*>(made.block.data());
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->arguments.count; ++i)
    made.argument_bytes.push_back(collet_value_type(program, entry->arguments.first + i)->bytes);
  for (uint32_t i = 0; i < entry->results.count; ++i)
    made.result_bytes.push_back(collet_value_type(program, collet_ref_at(program, entry->results.first + i))->bytes);
}

namespace {

bool entry_has(const collet_program* program, uint32_t opcode, uint32_t& number) {
  const collet_region* entry = collet_region_at(program, 0);
  for (uint32_t i = 0; i < entry->ops.count; ++i) {
    number = entry->ops.first + i;
    if (collet_op_at(program, number)->opcode == opcode) return true;
  }
  return false;
}

// Rejects programs of several ops with a reverse or a reduction, as a right backend may, and names wrong ops: more than the
// list's capacity, or one that is not in the entry.
bool rejects_wrongly(const collet_program* program, collet_rejection* rejection) {
  uint32_t number = 0;
  const collet_region* entry = collet_region_at(program, 0);
  if (entry->ops.count < 2 || !rejection || !rejection->ops) return false;
  if (is(Fault::rejection_ignores_small_room) && entry_has(program, COLLET_OP_REVERSE, number)) {
    rejection->ops[0] = number;
    rejection->ops[1] = number == entry->ops.first ? number + 1 : number - 1;
    rejection->count = std::min(rejection->count, 2u);
    return true;
  }
  if (is(Fault::rejection_names_inner_op) && entry_has(program, COLLET_OP_REDUCE, number)) {
    rejection->ops[0] = collet_region_at(program, collet_op_at(program, number)->regions.first)->ops.first;
    rejection->count = 1;
    return true;
  }
  return false;
}

// Compiles programs of one op alone, as a right backend may. Names an op to cut at, or none.
collet_status declines_several(const collet_program* program, collet_rejection* rejection, collet_error* error) {
  const bool is_exhausted = is(Fault::several_ops_exhaust_the_device);
  const collet_region* entry = collet_region_at(program, 0);
  if ((!is_exhausted && !is(Fault::several_ops_unimplemented)) || entry->ops.count < 2) return COLLET_OK;
  if (is_exhausted && rejection && rejection->count > 0) {
    rejection->ops[0] = entry->ops.first + 1;
    rejection->count = 1;
  }
  return fail(error, is_exhausted ? COLLET_RESOURCE_EXHAUSTED : COLLET_UNIMPLEMENTED, "more than one op");
}

// True if the program is one product whose precision or algorithm the backend, by this fault, takes for a low one.
bool misreads_precision(const collet_program* program) {
  uint32_t number = 0;
  if (collet_region_at(program, 0)->ops.count != 1) return false;
  if (entry_has(program, COLLET_OP_DOT, number)) {
    collet_dot_attrs attrs;
    collet_read_attributes(program, collet_op_at(program, number), &attrs, sizeof attrs);
    if (is(Fault::dot_algorithm_rounds)) return attrs.algorithm != 0 && attrs.algorithm != COLLET_ALGORITHM_F32_F32_F32;
    if (!is(Fault::dot_precision_rounds) || attrs.precision.count == 0) return false;
    return collet_integers(program, attrs.precision)[0] == COLLET_PRECISION_HIGH;
  }
  if (is(Fault::convolution_precision_rounds) && entry_has(program, COLLET_OP_CONVOLUTION, number)) {
    collet_convolution_attrs attrs;
    collet_read_attributes(program, collet_op_at(program, number), &attrs, sizeof attrs);
    return attrs.precision.count > 0;
  }
  return false;
}

std::atomic<bool> was_refused{false};  // whether the last program was refused

// Simulates two concurrent compilations that share one global variable.
void pass_shared_state(Executable& made) {
  static std::vector<uint64_t> shared;
  static std::mutex mutex;
  {
    const std::lock_guard lock(mutex);
    shared = made.block;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(500));
  const std::lock_guard lock(mutex);
  if (shared.size() == made.block.size()) made.block = shared;
}

std::atomic<int> cancelled{0};

collet_status report_progress(const collet_compile_options* options, collet_error* error) {
  if (!options || !options->progress || is(Fault::progress_never_reported)) return COLLET_OK;
  constexpr double kReports[] = {0.5, 0.75};
  for (double done : kReports) {
    const bool is_last = done == kReports[1];
    if (is(Fault::progress_beyond_one)) done = 50;
    int32_t stop = 0;
    const auto report = [&] { stop = options->progress(options->user, done, "compiling"); };
    if (is(Fault::progress_by_another_thread)) {
      std::thread(report).join();
    } else {
      report();
    }
    if (!stop || is(Fault::cancel_ignored) || (is_last && is(Fault::cancel_at_last_report_ignored))) continue;
    if (cancelled++ > 0 && is(Fault::cancel_works_once)) continue;
    if (is(Fault::cancelled_compile_reports_on)) report();
    return fail(error, COLLET_CANCELLED, "given up");
  }
  return COLLET_OK;
}

}  // namespace

collet_status compile(collet_backend_instance* p, const collet_program* program, const collet_compile_options* options,
                      collet_backend_executable** out, collet_executable_info* info, collet_rejection* rejection,
                      collet_error* error) {
  Instance* self = of(p);
  if (is_lost() && is(Fault::loss_crashes_compile)) std::abort();
  if (is_lost() && is(Fault::loss_heals_by_compile)) heal();
  if (is_lost() && is(Fault::loss_stops_compile)) return lost(error);
  if (const collet_status code = report_progress(options, error)) {
    if (is(Fault::cancelled_compile_leaks)) leave();
    return code;
  }
  if (is(Fault::five_dimensions_do_not_compile))
    for (uint32_t i = 0; i < program->types.count; ++i)
      if (collet_type_at(program, i)->dims.count > 4) return fail(error, COLLET_INTERNAL, "too many dimensions");
  if (is(Fault::head_of_one_size) && program->struct_size != sizeof *program)
    return fail(error, COLLET_INVALID_ARGUMENT, "not such a program");
  if (is(Fault::arrays_in_one_order) && program->types.offset > program->values.offset)
    return fail(error, COLLET_INVALID_ARGUMENT, "not such a program");
  if (is(Fault::yes_does_not_compile) && has_op(program, COLLET_OP_SORT))
    return fail(error, COLLET_UNIMPLEMENTED, "too much");
  if (is(Fault::rejection_overflows) && has_op(program, COLLET_OP_DOT)) {
    if (rejection) rejection->count = 1000;
    return fail(error, COLLET_UNIMPLEMENTED, "too much");
  }
  if (rejects_wrongly(program, rejection)) return fail(error, COLLET_UNIMPLEMENTED, "too much");
  if (const collet_status code = declines_several(program, rejection, error)) return code;
  ++compiles;
  auto made = std::make_unique<Executable>();
  made->owner = self;
  made->block.resize((program->total_bytes + 7) / 8);
  std::memcpy(made->block.data(), program, program->total_bytes);
  made->kept = program;
  made->assigned_device = options && options->assignment ? options->assignment[0] : 0;
  made->key.assign(reinterpret_cast<const char*>(program), program->total_bytes);
  if (is(Fault::one_executable_for_all)) {
    const auto found = by_program.find(made->key);
    if (found != by_program.end() && found->second->owner == self) {
      info->workspace_bytes = kExtraWorkspace;
      *out = reinterpret_cast<collet_backend_executable*>(found->second);
      return COLLET_OK;
    }
  }
  made->thread = std::this_thread::get_id();
  if (is(Fault::compiles_share_state)) pass_shared_state(*made);
  auto* changed = reinterpret_cast<collet_program*>(made->block.data());
  change(changed);
  take_earlier(*made);
  if (is(Fault::reserved_ignored)) {
    changed->flags = 0;
    for (uint32_t i = 0; i < changed->ops.count; ++i)
      at<collet_op>(changed, changed->ops, i)->flags = at<collet_op>(changed, changed->ops, i)->reserved = 0;
  }
  describe(*made);
  if (has_layouts()) note_rows(*made);
  made->rounds =
      misreads_precision(changed) || (is(Fault::optimized_run_rounds) && options && options->optimization == 3);
  const uint32_t size = info->struct_size;
  collet_executable_info inner{};
  inner.struct_size = sizeof inner;
  inner.absorbed_count = info->absorbed_count;
  inner.absorbed = info->absorbed;
  if (const collet_status code =
          behind->compile(self->inner, changed, options, &made->inner, &inner, rejection, error)) {
    if (is(Fault::error_code_zero)) error->code = 0;
    if (is(Fault::refused_compile_leaks)) leave();
    was_refused = true;
    if (is(Fault::older_out_executable_on_error)) *out = reinterpret_cast<collet_backend_executable*>(self);
    return code;
  }
  if (is(Fault::late_executables_refused) && open_executables >= kFewExecutables) {
    behind->release(made->inner);
    return fail(error, COLLET_INTERNAL, "no place for an executable");
  }
  if (is(Fault::compile_after_refusal_wrong)) made->is_idle = was_refused.load();
  if (is(Fault::cancelled_compile_spoils_the_next)) made->is_idle = cancelled > 0;
  made->is_after_loss = is_lost();
  was_refused = false;
  made->inner_workspace = (inner.workspace_bytes + 63) / 64 * 64;
  info->workspace_bytes = made->inner_workspace + kExtraWorkspace;
  info->workspace_alignment = is(Fault::workspace_alignment_odd) ? 48 : inner.workspace_alignment;
  info->resident_bytes = inner.resident_bytes;
  info->kernels = inner.kernels;
  if (is(Fault::resident_bytes_made_up)) info->resident_bytes = UINT64_MAX;
  if (is(Fault::traffic_made_up)) info->traffic_bytes = 8;
  info->absorbed_count = is(Fault::absorbs_too_much) ? 1000 : inner.absorbed_count;
  if (is(Fault::constant_absorbed_unseen) && program->constants.count > 0 && info->absorbed &&
      collet_constant_at(program, 0)->argument != COLLET_NONE) {
    info->absorbed_count = 1;
    info->absorbed[0] = 0;
  }
  if (is(Fault::compile_info_reserved_set)) info->reserved = 1;
  if (is(Fault::estimate_is_negative)) info->estimated_ns = -1;
  if (is(Fault::compile_info_of_today)) {
    constexpr size_t kEstimates = offsetof(collet_executable_info, estimated_ns);
    std::memset(reinterpret_cast<char*>(info) + kEstimates, 0, sizeof *info - kEstimates);
  }
  if (is(Fault::compile_info_overrun)) std::memset(reinterpret_cast<char*>(info) + size, 0, 8);
  if (is(Fault::one_executable_for_all)) by_program[made->key] = made.get();
  made->is_late = ++open_executables > kFewExecutables;
  *out = reinterpret_cast<collet_backend_executable*>(made.release());
  return COLLET_OK;
}

void release(collet_backend_executable* p) {
  if (is(Fault::loss_crashes_release) && is_lost()) std::abort();
  ++released;
  --open_executables;
  if (is(Fault::executables_leak)) return;
  if (is(Fault::executables_leak_little)) leave();
  by_program.erase(of(p)->key);
  behind->release(of(p)->inner);
  delete of(p);
}

namespace {

// A fault: executables of one size and one head are taken for the first of them.
void take_alike(uint8_t* bytes, uint64_t size) {
  constexpr uint64_t kHead = 64;
  static std::map<Bytes, Bytes> seen;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (size < kHead) return;
  Bytes key(bytes, bytes + kHead);
  key.push_back(static_cast<uint8_t>(size));
  key.push_back(static_cast<uint8_t>(size >> 8));
  const Bytes& first = seen.emplace(key, Bytes(bytes, bytes + size)).first->second;
  if (first.size() == size) std::copy(first.begin(), first.end(), bytes);
}

collet_status serialize(collet_backend_executable* p, void* out, uint64_t capacity, uint64_t* out_bytes,
                        collet_error* error) {
  const auto* table = static_cast<const collet_aot_table*>(behind->query(of(p)->owner->inner, "aot", 1));
  if (is(Fault::serialize_ignores_capacity) && capacity > 0) {
    uint64_t bytes = 0;
    table->serialize(of(p)->inner, nullptr, 0, &bytes, error);
    if (capacity < bytes) std::memset(out, 0, capacity);
  }
  const collet_status code = table->serialize(of(p)->inner, out, capacity, out_bytes, error);
  if (code == COLLET_OK && is(Fault::load_takes_alike) && capacity >= *out_bytes)
    take_alike(static_cast<uint8_t*>(out), *out_bytes);
  if (code == COLLET_OK && is(Fault::serialize_understates)) *out_bytes -= 8;
  if (code == COLLET_OK && is(Fault::serialize_refuses_small) && capacity < *out_bytes)
    return fail(error, COLLET_OUT_OF_RANGE, "too small");
  return code;
}

collet_status load_executable(collet_backend_instance* p, const void* bytes, uint64_t size,
                              const collet_compile_options* options, collet_backend_executable** out,
                              collet_executable_info* info, collet_error* error) {
  Instance* self = of(p);
  const auto* table = static_cast<const collet_aot_table*>(behind->query(self->inner, "aot", 1));
  auto made = std::make_unique<Executable>();
  made->owner = self;
  Bytes copy(static_cast<const uint8_t*>(bytes), static_cast<const uint8_t*>(bytes) + size);
  if (is(Fault::load_believes_anything) && size > 0 && size < sizeof(collet_program)) {
    *out = reinterpret_cast<collet_backend_executable*>(made.release());
    return COLLET_OK;
  }
  const collet_status code = table->load(self->inner, copy.data(), copy.size(), options, &made->inner, info, error);
  if (code != COLLET_OK) return fail(error, is(Fault::load_other_code) ? COLLET_INTERNAL : code, "not such bytes");
  made->block.resize((size + 7) / 8);
  std::memcpy(made->block.data(), copy.data(), size);
  auto* program = reinterpret_cast<collet_program*>(made->block.data());
  describe(*made);
  if (is(Fault::load_computes_otherwise)) {
    for (uint32_t i = 0; i < program->ops.count; ++i) {
      auto* op = at<collet_op>(program, program->ops, i);
      op->opcode = op->opcode == COLLET_OP_ADD ? COLLET_OP_SUBTRACT : COLLET_OP_ADD;
    }
    behind->release(made->inner);
    collet_rejection rejection{sizeof rejection, 0, nullptr};
    if (const collet_status again =
            behind->compile(self->inner, program, options, &made->inner, info, &rejection, error))
      return again;
  }
  made->inner_workspace = (info->workspace_bytes + 63) / 64 * 64;
  info->workspace_bytes = made->inner_workspace + kExtraWorkspace;
  *out = reinterpret_cast<collet_backend_executable*>(made.release());
  return COLLET_OK;
}

collet_status memory_stats(collet_backend_instance* p, uint32_t device, uint32_t, collet_memory_stats* stats,
                           collet_error*) {
  Instance* self = of(p);
  const std::lock_guard lock(self->mutex);
  uint64_t& peak = self->peak_bytes[device];
  uint64_t bytes = 0, count = 0;
  for (const Buffer* buffer : self->buffers) {
    if (buffer->device != device && !is(Fault::memory_stats_of_all_devices)) continue;
    bytes += buffer->bytes;
    ++count;
  }
  peak = std::max(peak, bytes);
  const uint32_t size = stats->struct_size;
  stats->bytes_in_use = is(Fault::memory_stats_constant) ? 1000 : bytes;
  stats->peak_bytes_in_use = is(Fault::memory_stats_no_peak) ? 0 : std::max(peak, stats->bytes_in_use);
  stats->allocations = is(Fault::memory_stats_counts_up) ? self->answers++ : count;
  if (is(Fault::memory_stats_limit_made_up)) stats->bytes_limit = 1;
  if (is(Fault::memory_stats_overrun)) std::memset(reinterpret_cast<char*>(stats) + size, 0, 8);
  return COLLET_OK;
}

collet_status artifact(collet_backend_executable* p, uint32_t index, const char** out_name, const void** out_bytes,
                       uint64_t* out_size, collet_error* error) {
  const Executable* self = of(p);
  if (index > 0 && !is(Fault::artifacts_without_end))
    return fail(error, is(Fault::artifacts_end_other_code) ? COLLET_NOT_FOUND : COLLET_OUT_OF_RANGE, "no more");
  if (is(Fault::artifact_changes)) {
    static std::atomic<uint64_t> gets{0};
    static uint64_t contents = 0;
    contents = ++gets;
    *out_name = "program.bin";
    *out_bytes = &contents;
    *out_size = sizeof contents;
    return COLLET_OK;
  }
  *out_name = is(Fault::artifact_name_missing) ? "" : "program.bin";
  *out_bytes = self->block.data();
  *out_size = self->block.size() * sizeof self->block[0];
  return COLLET_OK;
}

}  // namespace

const void* query(collet_backend_instance* p, const char* name, uint32_t version) {
  static const collet_aot_table aot = {sizeof(collet_aot_table), 0, serialize, load_executable};
  static const collet_memory_stats_table stats = {sizeof(collet_memory_stats_table), 0, memory_stats};
  static const collet_artifacts_table artifacts = {sizeof(collet_artifacts_table), 0, artifact};
  if (is(Fault::queries_leak)) leave();
  if (version != 1 && !is(Fault::query_any_version)) return nullptr;
  const std::string_view wanted = name;
  if (is(Fault::query_gives_another_place) && wanted == "memory_stats") {
    static const collet_memory_stats_table other = stats;
    static std::atomic<int> queries{0};
    return queries++ % 3 == 2 ? &other : &stats;
  }
  if (wanted == "memory_stats") return &stats;
  if (wanted == "artifacts") return &artifacts;
  if (wanted == "queue") return queue_table(of(p));
  if (wanted == "exchange") return exchange_table();
  if (wanted == "layout") return layout_table();
  if (const void* table = further_table(wanted)) return table;
  const bool has_aot = behind->query && behind->query(of(p)->inner, "aot", 1);
  if (wanted == "aot") return has_aot ? &aot : nullptr;
  return is(Fault::query_any_name) ? &stats : nullptr;
}

}  // namespace collet::mutants

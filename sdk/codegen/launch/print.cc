// SPDX-License-Identifier: Apache-2.0
#include "sdk/codegen/launch/print.h"

#include <variant>

namespace collet::codegen {
namespace {

std::string print_matrix(const LibraryMatrix& m) {
  std::string text = collet_type_name(m.type);
  text += "[" + std::to_string(m.batch) + ", " + std::to_string(m.row) + ", " + std::to_string(m.column) + "]";
  return m.offset == 0 ? text : text + " + " + std::to_string(m.offset);
}

std::string print_call(const LibraryProduct& p) {
  return "product of " + std::to_string(p.batches) + " of " + std::to_string(p.rows) + " x " +
         std::to_string(p.columns) + " x " + std::to_string(p.depth) + ", " + print_matrix(p.a) + " * " +
         print_matrix(p.b) + " -> " + print_matrix(p.c) + ", sums of " + collet_type_name(p.sum_type) +
         (p.tf32 ? ", tf32" : "");
}

std::string print_call(const LibraryConvolution& c) {
  using Direction = LibraryConvolution::Direction;
  std::string text = c.direction == Direction::kInputGradient    ? "gradient of the input of a "
                     : c.direction == Direction::kFilterGradient ? "gradient of the filter of a "
                                                                 : "";
  text += "convolution of " + std::to_string(c.batch) + " of " + std::to_string(c.input_features) + " to " +
          std::to_string(c.output_features) + " features";
  if (c.groups != 1) text += " in " + std::to_string(c.groups) + " groups";
  for (const LibraryConvolution::Dimension& d : c.dims) {
    text += ", " + std::to_string(d.input) + " to " + std::to_string(d.output) + " by " + std::to_string(d.window);
    if (d.stride != 1) text += " stride " + std::to_string(d.stride);
    if (d.padding != 0) text += " pad " + std::to_string(d.padding);
    if (d.dilation != 1) text += " dilate " + std::to_string(d.dilation);
  }
  text += std::string(", ") + collet_type_name(c.type) + ", sums of " + collet_type_name(c.sum_type);
  return text + (c.tf32 ? ", tf32" : "") + (c.filter_has_features_last ? ", filter with features last" : "");
}

std::string print_call(const LibraryFft& f) {
  std::string text = f.inverse ? "inverse fft of " : "fft of ";
  text += std::to_string(f.batches) + " of ";
  for (size_t i = 0; i < f.lengths.size(); ++i) text += (i == 0 ? "" : " x ") + std::to_string(f.lengths[i]);
  return text + ", " + collet_type_name(f.operand_type) + " -> " + collet_type_name(f.result_type);
}

std::string print_call(const LibraryFactorization& f) {
  using Kind = LibraryFactorization::Kind;
  std::string text = std::string(name_of(f.kind)) + " of " + std::to_string(f.batches) + " of " +
                     std::to_string(f.rows) + " x " + std::to_string(f.columns) + ", " + collet_type_name(f.type);
  const bool has_triangle = f.kind == Kind::kCholesky || f.kind == Kind::kTriangularSolve || f.kind == Kind::kEigh;
  if (has_triangle) text += f.lower ? ", lower" : ", upper";
  if (f.kind == Kind::kTriangularSolve) text += f.left ? ", left" : ", right";
  if (f.unit_diagonal) text += ", unit diagonal";
  if (f.transposed) text += f.conjugated ? ", adjoint" : ", transposed";
  if (f.kind == Kind::kReflectors) text += ", " + std::to_string(f.factors) + " factors";
  if (f.vectors) text += f.full ? ", all vectors" : ", vectors";
  return text;
}

class Printer {
 public:
  explicit Printer(const LaunchPlan& plan) : plan_(plan) {}

  std::string run() {
    out_ += "workspace " + std::to_string(plan_.workspace_bytes) + " bytes, constants " +
            std::to_string(plan_.constants.size()) + " bytes\n";
    sizes("argument", plan_.argument_bytes);
    sizes("result", plan_.result_bytes);
    for (size_t i = 0; i < plan_.libraries.size(); ++i)
      out_ += "library " + std::to_string(i) + ": " + print_library_call(plan_.libraries[i]) + "\n";
    for (size_t i = 0; i < plan_.collectives.size(); ++i) collective(i, plan_.collectives[i]);
    steps(plan_.steps, "");
    return out_;
  }

 private:
  void sizes(const char* what, const std::vector<uint64_t>& bytes) {
    for (size_t i = 0; i < bytes.size(); ++i)
      out_ += std::string(what) + std::to_string(i) + ": " + std::to_string(bytes[i]) + " bytes\n";
  }

  void collective(size_t i, const CollectiveCall& call) {
    out_ += "collective " + std::to_string(i) + ": " + name_of(call.kind);
    for (const CollectiveCall::Part& part : call.parts) {
      out_ += std::string(", ") + collet_type_name(part.type) + " " + std::to_string(part.source_elements) + " -> " +
              std::to_string(part.target_elements);
    }
    out_ += ", groups";
    for (const std::vector<uint32_t>& group : call.groups) {
      for (size_t k = 0; k < group.size(); ++k) out_ += (k == 0 ? " {" : ",") + std::to_string(group[k]);
      out_ += "}";
    }
    for (size_t k = 0; k + 1 < call.pairs.size(); k += 2)
      out_ += " " + std::to_string(call.pairs[k]) + "->" + std::to_string(call.pairs[k + 1]);
    out_ += "\n";
  }

  std::string place(const Place& p) const {
    const auto from = [&](const char* name, uint32_t first) { return name + std::to_string(p.slot - first); };
    std::string text = p.slot < plan_.arguments          ? from("argument", 0)
                       : p.slot < workspace_slot(plan_)  ? from("result", plan_.arguments)
                       : p.slot == workspace_slot(plan_) ? "workspace"
                                                         : "constants";
    return p.offset ? text + "+" + std::to_string(p.offset) : text;
  }

  std::string places(const Step& step) const {
    std::string text;
    for (uint32_t i = 0; i < step.places; ++i) {
      text += (i ? ", " : "") + place(plan_.places[step.first_place + i]);
      if (i < step.block_bytes.size() && step.block_bytes[i] != 0)
        text += " (" + std::to_string(step.block_bytes[i]) + " bytes of each thread)";
    }
    return "(" + text + ")";
  }

  void steps(const StepList& list, const std::string& indent) {
    for (const Step& step : list) {
      out_ += indent;
      one(step, indent);
    }
  }

  void one(const Step& step, const std::string& indent) {
    switch (step.kind) {
      case StepKind::kKernel:
        out_ += plan_.functions[step.kernel.function];
        if (step.kernel.tail != kNoFunction) out_ += " then " + plan_.functions[step.kernel.tail];
        out_ += places(step);
        if (step.kernel.blocks != 0) {
          out_ += " as " + std::to_string(step.kernel.blocks) + " blocks of " +
                  std::to_string(step.kernel.block_threads) + " threads";
          if (step.kernel.shared_bytes != 0) out_ += " with " + std::to_string(step.kernel.shared_bytes) + " bytes";
          for (const int64_t number : step.kernel.numbers) out_ += ", " + std::to_string(number);
          break;
        }
        out_ += " range " + std::to_string(step.kernel.range);
        if (step.kernel.parallel) out_ += " in parallel, grain " + std::to_string(step.kernel.grain);
        break;
      case StepKind::kRoutine:
        out_ += std::string(collet_op_name(plan_.routines[step.call].opcode)) + places(step);
        break;
      case StepKind::kCopy:
        out_ += "copy" + places(step) + " " + std::to_string(step.bytes) + " bytes";
        break;
      case StepKind::kWhile:
        out_ += step.trips >= 0 ? "while " + std::to_string(step.trips) + " trips" : "while" + places(step);
        if (step.loop != kNoFunction) out_ += " as " + plan_.functions[step.loop];
        break;
      case StepKind::kConditional:
        out_ += "conditional" + places(step);
        break;
      case StepKind::kLibrary:
        out_ += "library " + std::to_string(step.call) + places(step);
        break;
      case StepKind::kHostValue:
        out_ += host_value(plan_.host_values[step.call]) + places(step);
        break;
      case StepKind::kCollective:
        out_ += "collective " + std::to_string(step.call) + places(step);
        break;
      case StepKind::kChoice:
        out_ += "choice " + std::to_string(step.call);
        break;
      case StepKind::kBlocks:
        out_ += std::to_string(step.kernel.range) + " blocks of rows";
        if (step.kernel.parallel) out_ += " in parallel";
        break;
    }
    out_ += "\n";
    if (step.kind == StepKind::kBlocks) return steps(step.children[0], indent + "  ");
    const std::string one_of = step.kind == StepKind::kChoice ? "way " : "branch ";
    for (size_t i = 0; i < step.children.size(); ++i) {
      const bool loop = step.kind == StepKind::kWhile;
      if (loop && i == 0 && step.trips >= 0) continue;
      out_ += indent + "  " + (loop ? (i == 0 ? "condition" : "body") : one_of + std::to_string(i)) + "\n";
      steps(step.children[i], indent + "    ");
    }
  }

  static std::string host_value(const HostValue& value) {
    if (value.kind == HostValue::Kind::kReplica) return "replica";
    if (value.kind == HostValue::Kind::kPartition) return "partition";
    return "random state of source " + std::to_string(value.source) + " by " + std::to_string(value.delta);
  }

  const LaunchPlan& plan_;
  std::string out_;
};

}  // namespace

std::string print_library_call(const LibraryCall& call) {
  return std::visit([](const auto& one) { return print_call(one); }, call);
}

std::string print_launch_plan(const LaunchPlan& plan) {
  return Printer(plan).run();
}

}  // namespace collet::codegen

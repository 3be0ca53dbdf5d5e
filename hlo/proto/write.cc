// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <unordered_map>

#include "hlo/proto/kept_text.h"
#include "hlo/proto/proto.h"
#include "hlo/proto/wire.h"
#include "hlo/proto/write_attributes.h"

namespace collet::hlo {
namespace proto {
namespace {

constexpr size_t kMostBytes = INT32_MAX;  // largest message in bytes
constexpr int64_t kMostDevices = 1 << 20;
constexpr int kIdBits = 32;  // an instruction's id consists of the id of its computation and its number there

class Writer {
 public:
  explicit Writer(const Module& module) : module_(module) {}

  Status run(wire::HloModuleProto* out) {
    if (module_.entry() == CompId::None) return invalid_argument("the module has no entry");
    find_order();
    out->set_name(std::string(module_.name()));
    out->set_id(1);
    out->set_entry_computation_name(name(module_.entry()));
    out->set_entry_computation_id(id(module_.entry()));
    for (CompId c : order_) COLLET_TRY(computation(c, out->add_computations()));
    header(out);
    return ok_status();
  }

 private:
  int64_t id(CompId c) const { return number_[index_of(c)]; }
  int64_t id(InstrId i) const { return id(module_[i].parent) << kIdBits | position_[index_of(i)]; }

  // Sorts the computations so that callees come before callers, which passes may have changed; ids are positions in
  // that order.
  void find_order() {
    number_.assign(module_.computation_limit(), 0);
    position_.assign(module_.instruction_limit(), 0);
    fused_.assign(module_.computation_limit(), false);
    std::vector<bool> seen(module_.computation_limit(), false);
    std::vector<CompId> stack;
    for (CompId root : module_.computations()) {
      stack.push_back(root);
      while (!stack.empty()) {
        const CompId c = stack.back();
        if (number_[index_of(c)]) {
          stack.pop_back();
        } else if (seen[index_of(c)]) {
          order_.push_back(c);
          number_[index_of(c)] = static_cast<int64_t>(order_.size());
          stack.pop_back();
        } else {
          seen[index_of(c)] = true;
          for (InstrId i : module_[c].order)
            for (CompId callee : module_[i].called) {
              fused_[index_of(callee)] = fused_[index_of(callee)] || module_[i].op == Op::FUSION;
              if (!seen[index_of(callee)]) stack.push_back(callee);
            }
        }
      }
    }
    for (CompId c : order_) {
      int64_t n = 0;
      for (InstrId i : module_[c].order) position_[index_of(i)] = n++;
    }
    find_names();
  }

  // In a message, names are unique in the whole module. The first instruction with a name keeps it; others get the next
  // free number appended.
  void find_names() {
    const auto differ = [](auto& taken, std::string_view name, auto& other, uint32_t index) {
      if (taken.emplace(std::string(name), 1).second) return;
      const size_t dot = name.find_last_of('.');
      const bool numbered = dot != std::string_view::npos && dot > 0 && dot + 1 < name.size() &&
                            name.find_first_not_of("0123456789", dot + 1) == std::string_view::npos;
      const std::string stem(numbered ? name.substr(0, dot) : name);
      int& next = taken.emplace(stem, 1).first->second;
      std::string made;
      do made = stem + "." + std::to_string(next++);
      while (!taken.emplace(made, 1).second);
      other.emplace(index, std::move(made));
    };
    std::unordered_map<std::string, int> computations, instructions;
    for (CompId c : order_) differ(computations, module_[c].name, computation_names_, index_of(c));
    for (CompId c : order_)
      for (InstrId i : module_[c].order) differ(instructions, module_[i].name, instruction_names_, index_of(i));
  }

  std::string name(CompId c) const {
    const auto it = computation_names_.find(index_of(c));
    return it == computation_names_.end() ? std::string(module_[c].name) : it->second;
  }
  std::string name(InstrId i) const {
    const auto it = instruction_names_.find(index_of(i));
    return it == instruction_names_.end() ? std::string(module_[i].name) : it->second;
  }

  void program_shape(const Computation& c, wire::ProgramShapeProto* out, bool names) const {
    for (InstrId p : c.parameters) {
      if (p == InstrId::None) continue;
      to_wire(module_[p].shape, out->add_parameters());
      if (names) out->add_parameter_names(name(p));
    }
    if (c.root != InstrId::None) to_wire(module_[c.root].shape, out->mutable_result());
  }

  Status computation(CompId c, wire::HloComputationProto* out) const {
    const Computation& in = module_[c];
    out->set_name(name(c));
    out->set_id(id(c));
    out->set_root_id(id(in.root));
    out->set_is_fusion_computation(fused_[index_of(c)]);
    if (!in.execution_thread.empty() && in.execution_thread != "main")
      out->set_execution_thread(std::string(in.execution_thread));
    program_shape(in, out->mutable_program_shape(), true);
    for (InstrId i : in.order) {
      const Status status = instruction(i, out->add_instructions());
      if (!status.ok()) return status.with_prefix("instruction '" + std::string(module_[i].name) + "': ");
    }
    return ok_status();
  }

  Status instruction(InstrId i, wire::HloInstructionProto* out) const {
    const Instruction& in = module_[i];
    out->set_name(name(i));
    out->set_opcode(std::string(op_info(in.op).text));
    to_wire(in.shape, out->mutable_shape());
    out->set_id(id(i));
    for (InstrId operand : in.operands) out->add_operand_ids(id(operand));
    called(in, out);
    if (in.op == Op::CONSTANT && module_.literal(in).byte_size() > static_cast<int64_t>(kMostBytes))
      return resource_exhausted("the constant takes more than 2 GiB, which a message cannot hold");
    COLLET_TRY(to_wire(module_, in, out));
    return in.extras ? extras(*in.extras, out) : ok_status();
  }

  void called(const Instruction& in, wire::HloInstructionProto* out) const {
    // Update and done ops use the computation of their start.
    if (in.op == Op::ASYNC_UPDATE || in.op == Op::ASYNC_DONE) return;
    for (CompId c : in.called) out->add_called_computation_ids(id(c));
    // In the message the body comes first.
    if (op_info(in.op).regions == Regions::CONDITION_BODY && in.called.size() == 2)
      out->mutable_called_computation_ids()->SwapElements(0, 1);
  }

  static void frontend(std::span<const FrontendAttribute> in, wire::FrontendAttributes* out) {
    for (const FrontendAttribute& attribute : in) {
      auto* to = out->add_map();
      to->set_key(std::string(attribute.name));
      to->set_value(std::string(attribute.value));
    }
  }

  static void metadata(const Metadata& in, wire::OpMetadata* out) {
    out->set_op_type(std::string(in.op_type));
    out->set_op_name(std::string(in.op_name));
    out->set_source_file(std::string(in.source_file));
    out->set_deduplicated_name(std::string(in.deduplicated_name));
    out->set_scheduling_name(std::string(in.scheduling_name));
    out->set_source_line(described(in.source_line));
    out->set_source_end_line(described(in.source_end_line));
    out->set_source_column(described(in.source_column));
    out->set_source_end_column(described(in.source_end_column));
    out->set_stack_frame_id(described(in.stack_frame_id));
    for (int64_t type : in.profile_type) out->add_profile_type(described(type));
  }

  Status extras(const Extras& in, wire::HloInstructionProto* out) const {
    for (InstrId before : in.control_predecessors) out->add_control_predecessor_ids(id(before));
    if (in.metadata) metadata(*in.metadata, out->mutable_metadata());
    if (in.sharding) COLLET_TRY(to_wire(*in.sharding, out->mutable_sharding()));
    if (!in.frontend_attributes.empty()) frontend(in.frontend_attributes, out->mutable_frontend_attributes());
    out->set_backend_config(std::string(in.backend_config));
    for (bool replicated : in.parameter_replication)
      out->mutable_parameter_replication()->add_replicated_at_leaf_buffers(replicated);
    if (in.result_accuracy) {
      auto* to = out->mutable_result_accuracy();
      if (in.result_accuracy->is_mode) {
        to->set_mode(in.result_accuracy->mode == "highest");
      } else {
        to->mutable_tolerance()->set_atol(in.result_accuracy->atol);
        to->mutable_tolerance()->set_rtol(in.result_accuracy->rtol);
        to->mutable_tolerance()->set_ulps(in.result_accuracy->ulps);
      }
    }
    // Descriptive information is omitted if the message has no field for it.
    if (!in.origin.empty() && !origin_to_wire(in.origin, out->mutable_original_value()).ok())
      out->clear_original_value();
    if (!in.statistics.empty() && !statistics_to_wire(in.statistics, out->mutable_statistics_viz()).ok())
      out->clear_statistics_viz();
    return ok_status();
  }

  void header(wire::HloModuleProto* out) const {
    const ModuleHeader& h = module_.header();
    auto* host = out->mutable_host_program_shape();
    program_shape(module_.entry_computation(), host, true);
    if (h.has_entry_layout) {
      host->clear_parameters();
      for (const Shape& shape : h.entry_parameters) to_wire(shape, host->add_parameters());
      host->clear_result();
      to_wire(h.entry_result, host->mutable_result());
    }
    for (const InputOutputAlias& alias : h.aliases) {
      auto* to = out->mutable_input_output_alias()->add_entries();
      for (int64_t i : alias.output_index) to->add_output_shape_index(i);
      to->set_parameter_number(alias.parameter);
      for (int64_t i : alias.parameter_index) to->add_parameter_shape_index(i);
      to->set_kind(alias.must ? 2 : 1);
    }
    for (const BufferDonor& donor : h.donors) {
      auto* to = out->mutable_buffer_donor()->add_entries();
      to->set_parameter_number(donor.parameter);
      for (int64_t i : donor.parameter_index) to->add_parameter_shape_index(i);
    }
    frontend(h.frontend_attributes, out->mutable_frontend_attributes());
    if (h.is_scheduled) schedule(out->mutable_schedule());
    if (h.replica_count != 1 || h.num_partitions != 1) devices(out->mutable_device_assignment());
    out->set_is_dynamic(is_dynamic());
    if (!source_tables_to_wire(h.verbatim, out->mutable_stack_frame_index())) out->clear_stack_frame_index();
  }

  void schedule(wire::HloScheduleProto* out) const {
    for (CompId c : order_) {
      auto* entry = out->add_sequences();
      entry->set_key(id(c));
      for (InstrId i : module_[c].order) entry->mutable_value()->add_instruction_ids(id(i));
    }
  }

  // Writes the default device assignment, because text states only the numbers of replicas and partitions.
  void devices(wire::DeviceAssignmentProto* out) const {
    const ModuleHeader& h = module_.header();
    if (h.replica_count > kMostDevices || h.num_partitions > kMostDevices / std::max<int64_t>(h.replica_count, 1))
      return;
    out->set_replica_count(static_cast<int32_t>(h.replica_count));
    out->set_computation_count(static_cast<int32_t>(h.num_partitions));
    for (int64_t p = 0; p < h.num_partitions; ++p) {
      auto* to = out->add_computation_devices();
      for (int64_t r = 0; r < h.replica_count; ++r) to->add_replica_device_ids(r * h.num_partitions + p);
    }
  }

  bool is_dynamic() const {
    const Computation& entry = module_.entry_computation();
    return std::any_of(entry.parameters.begin(), entry.parameters.end(),
                       [&](InstrId p) { return p != InstrId::None && module_[p].shape.has_dynamic(); });
  }

  const Module& module_;
  std::vector<CompId> order_;
  std::vector<int64_t> number_, position_;
  std::vector<bool> fused_;
  // Replacements for names that are not unique.
  std::unordered_map<uint32_t, std::string> computation_names_, instruction_names_;
};

Expected<std::string> serialized(const google::protobuf::MessageLite& message) {
  if (message.ByteSizeLong() > kMostBytes)
    return resource_exhausted("the program takes more than 2 GiB, which a message cannot hold");
  return message.SerializeAsString();
}

}  // namespace
}  // namespace proto

Expected<std::string> write_module_proto(const Module& module) {
  wire::HloModuleProto out;
  COLLET_TRY(proto::Writer(module).run(&out));
  return proto::serialized(out);
}

Expected<std::string> write_proto(const Module& module) {
  wire::HloProto out;
  COLLET_TRY(proto::Writer(module).run(out.mutable_hlo_module()));
  return proto::serialized(out);
}

Expected<std::string> write_snapshot(const Module& module, const Snapshot& values) {
  wire::HloSnapshot out;
  COLLET_TRY(proto::Writer(module).run(out.mutable_hlo()->mutable_hlo_module()));
  for (const Literal& argument : values.arguments) proto::to_wire(argument, out.add_arguments());
  if (values.result.valid()) proto::to_wire(values.result, out.mutable_result());
  out.set_execution_platform(values.platform);
  return proto::serialized(out);
}

}  // namespace collet::hlo

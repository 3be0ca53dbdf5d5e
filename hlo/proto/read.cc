// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <deque>
#include <limits>
#include <unordered_map>

#include "hlo/ir/metadata.h"
#include "hlo/proto/attribute_text.h"
#include "hlo/proto/extras.h"
#include "hlo/proto/kept_text.h"
#include "hlo/proto/proto.h"
#include "hlo/proto/wire.h"
#include "hlo/text/parser.h"
#include "hlo/text/writer.h"

namespace collet::hlo {
namespace proto {
namespace {

// Returns a name from the file for use in an error message, shortened if it is long.
std::string shown(std::string_view name) {
  std::string out;
  text::write_string(out, name.substr(0, 100));
  return out;
}

Op op_named(std::string_view name) {
  static const auto* table = [] {
    auto* out = new std::unordered_map<std::string_view, Op>;
    for (int i = 1; i <= kLastOp; ++i) out->emplace(op_info(static_cast<Op>(i)).text, static_cast<Op>(i));
    return out;
  }();
  const auto it = table->find(name);
  return it == table->end() ? Op::INVALID : it->second;
}

// Reads a module in three steps. First the instructions are written as HLO text, one per line, under generated names.
// Then the text reader creates them, with the same checks as for text. Finally information that text would only carry
// through (names, the bits of constants, metadata, configurations) is set from the message. Errors of the text reader
// name a line, which is mapped back to the instruction in the message.
class Reader {
 public:
  explicit Reader(const wire::HloModuleProto& in) : in_(in) {}

  Expected<std::unique_ptr<Module>> run() {
    COLLET_TRY(header());
    for (const auto& computation : in_.computations()) COLLET_TRY(computation_text(computation));
    if (!entry_seen_) return invalid_argument("field 'entry_computation_id': there is no such computation");
    ParseOptions options;
    options.elided = ElidedConstants::Zeros;
    options.max_errors = 1;
    Diagnostics diagnostics("", 1);
    std::unique_ptr<Module> module = parse_module(text_, options, diagnostics);
    if (!module) return complaint(diagnostics);
    dress(*module);
    return module;
  }

 private:
  struct Line {
    const wire::HloComputationProto* computation = nullptr;
    const wire::HloInstructionProto* instruction = nullptr;
    Literal literal;  // values of constants
    const Sharding* sharding = nullptr;
  };
  struct Place {
    size_t number = 0;  // index in lines_
    Shape shape;
  };

  void end_line() { end_line(Line()); }
  void end_line(Line line) {
    text_ += '\n';
    lines_.push_back(std::move(line));
  }

  static std::string place(const Line& line) {
    std::string out;
    if (line.computation) out += "computation " + shown(line.computation->name()) + ": ";
    if (line.instruction) out += "instruction " + shown(line.instruction->name()) + ": ";
    return out;
  }

  Status complaint(const Diagnostics& diagnostics) const {
    if (diagnostics.empty()) return internal_error("the module could not be read");
    const Diagnostic& first = diagnostics.list().front();
    const size_t line = first.line ? first.line - 1 : 0;
    return invalid_argument((line < lines_.size() ? place(lines_[line]) : "") + first.message);
  }

  // ---- the header ----

  /// Checks that the numbers of replicas and partitions are those of the device assignment.
  Status devices(const wire::DeviceAssignmentProto& in) const {
    bool fits = in.computation_devices_size() == in.computation_count() &&
                (in.computation_count() > 0 || in.replica_count() == 0);
    for (const auto& devices : in.computation_devices())
      fits &= devices.replica_device_ids_size() == in.replica_count();
    if (fits) return ok_status();
    return invalid_argument("field 'device_assignment': does not name " + std::to_string(in.replica_count()) +
                            " devices for each of " + std::to_string(in.computation_count()) + " computations");
  }

  Status header() {
    text_ = "HloModule m";
    if (in_.has_schedule()) text_ += ", is_scheduled=true";
    COLLET_TRY(devices(in_.device_assignment()));
    if (in_.device_assignment().replica_count() > 1)
      text_ += ", replica_count=" + std::to_string(in_.device_assignment().replica_count());
    if (in_.device_assignment().computation_count() > 1)
      text_ += ", num_partitions=" + std::to_string(in_.device_assignment().computation_count());
    COLLET_TRY(aliases());
    if (in_.has_host_program_shape()) {
      text_ += ", entry_computation_layout={(";
      for (int i = 0; i < in_.host_program_shape().parameters_size(); ++i) {
        if (i) text_ += ", ";
        COLLET_TRY(shape(in_.host_program_shape().parameters(i)).with_prefix("field 'host_program_shape': "));
      }
      text_ += ")->";
      COLLET_TRY(shape(in_.host_program_shape().result()).with_prefix("field 'host_program_shape': "));
      text_ += '}';
    }
    end_line();
    for (const auto& entry : in_.schedule().sequences()) schedule_.emplace(entry.key(), &entry.value());
    for (const auto& computation : in_.computations())
      if (!computation_number_.emplace(computation.id(), computation_number_.size()).second)
        return invalid_argument("field 'computations': two have the id " + std::to_string(computation.id()));
    source_tables();
    return ok_status();
  }

  Status shape(const wire::ShapeProto& in) {
    COLLET_ASSIGN(const Shape shape, from_wire(in));
    text::write_shape(text_, shape, true);
    return ok_status();
  }

  template <typename Repeated>
  void index(const Repeated& list) {
    const std::vector<int64_t> numbers(list.begin(), list.end());
    text::write_braces(text_, numbers);
  }

  Status aliases() {
    const auto& aliases = in_.input_output_alias().entries();
    for (int i = 0; i < aliases.size(); ++i) {
      text_ += i ? ", " : ", input_output_alias={ ";
      if (aliases[i].kind() != 1 && aliases[i].kind() != 2)
        return invalid_argument("field 'input_output_alias': there is no kind " + std::to_string(aliases[i].kind()));
      index(aliases[i].output_shape_index());
      text_ += ": (" + std::to_string(aliases[i].parameter_number()) + ", ";
      index(aliases[i].parameter_shape_index());
      text_ += aliases[i].kind() == 2 ? ", must-alias)" : ", may-alias)";
    }
    if (!aliases.empty()) text_ += " }";
    const auto& donors = in_.buffer_donor().entries();
    for (int i = 0; i < donors.size(); ++i) {
      text_ += (i ? ", (" : ", buffer_donor={ (") + std::to_string(donors[i].parameter_number()) + ", ";
      index(donors[i].parameter_shape_index());
      text_ += ')';
    }
    if (!donors.empty()) text_ += " }";
    return ok_status();
  }

  void table(std::string_view title, int size, const auto& row) {
    text_ += title;
    end_line();
    for (int i = 0; i < size; ++i) {
      text_ += std::to_string(i + 1) + " ";
      row(i);
      end_line();
    }
    end_line();
  }

  void source_tables() {
    const auto& in = in_.stack_frame_index();
    if (!in.file_names_size() && !in.function_names_size() && !in.file_locations_size() && !in.stack_frames_size())
      return;
    end_line();
    table("FileNames", in.file_names_size(), [&](int i) { text::write_string(text_, in.file_names(i)); });
    table("FunctionNames", in.function_names_size(), [&](int i) { text::write_string(text_, in.function_names(i)); });
    table("FileLocations", in.file_locations_size(), [&](int i) {
      const auto& at = in.file_locations(i);
      text_ += "{file_name_id=" + std::to_string(at.file_name_id()) +
               " function_name_id=" + std::to_string(at.function_name_id()) + " line=" + std::to_string(at.line()) +
               " end_line=" + std::to_string(at.end_line()) + " column=" + std::to_string(at.column()) +
               " end_column=" + std::to_string(at.end_column()) + "}";
    });
    // In text the number of a parent is one larger than in the message.
    table("StackFrames", in.stack_frames_size(), [&](int i) {
      text_ += "{file_location_id=" + std::to_string(in.stack_frames(i).file_location_id()) +
               " parent_frame_id=" + std::to_string(int64_t{in.stack_frames(i).parent_frame_id()} + 1) + "}";
    });
  }

  // ---- computations ----

  using ById = std::unordered_map<int64_t, const wire::HloInstructionProto*>;

  /// Returns what identifies an instruction of the current computation that has, or is referred to by, this id.
  int64_t key(int64_t id) const { return id & key_mask_; }

  /// Sorts the instructions of a computation by key. Some writers, XlaBuilder among them, put the computation's id into the
  /// upper half of an instruction's own id, and leave it out of references. So the lower half is the key, unless two
  /// instructions have the same.
  Status index(const wire::HloComputationProto& in, ById& by_id) {
    for (const int64_t mask : {int64_t{0xffffffff}, int64_t{-1}}) {
      key_mask_ = mask;
      by_id.clear();
      const auto& all = in.instructions();
      const auto second = std::find_if(all.begin(), all.end(), [&](const wire::HloInstructionProto& instruction) {
        return !by_id.emplace(key(instruction.id()), &instruction).second;
      });
      if (second == all.end()) return ok_status();
      if (mask == -1) return invalid_argument("two instructions have the id " + std::to_string(second->id()));
    }
    return ok_status();
  }

  Expected<std::vector<const wire::HloInstructionProto*>> ordered(const wire::HloComputationProto& in) {
    std::vector<const wire::HloInstructionProto*> out;
    ById by_id;
    COLLET_TRY(index(in, by_id));
    for (const auto& instruction : in.instructions()) out.push_back(&instruction);
    const auto it = schedule_.find(in.id());
    if (it == schedule_.end()) return out;
    out.clear();
    for (int64_t id : it->second->instruction_ids()) {
      const auto found = by_id.find(key(id));
      if (found == by_id.end())
        return invalid_argument("field 'schedule' names instruction " + std::to_string(id) +
                                ", which is not there or named twice");
      out.push_back(found->second);
      by_id.erase(found);
    }
    if (!by_id.empty())
      return invalid_argument("field 'schedule' leaves out instruction " + shown(by_id.begin()->second->name()));
    return out;
  }

  Status computation_text(const wire::HloComputationProto& in) {
    Line line;
    line.computation = &in;
    if (in.id() == in_.entry_computation_id()) {
      text_ += "ENTRY ";
      entry_seen_ = true;
    }
    text_ += "%c" + std::to_string(computation_number_.at(in.id())) + " {";
    end_line(line);
    places_.clear();
    auto instructions = ordered(in);
    if (!instructions.ok()) return instructions.status().with_prefix(place(line));
    for (const auto* instruction : *instructions) {
      line.instruction = instruction;
      COLLET_TRY(instruction_text(line).with_prefix(place(line)));
    }
    line.instruction = nullptr;
    if (!places_.contains(key(in.root_id())))
      return invalid_argument(place(line) + "field 'root_id': there is no such instruction");
    COLLET_TRY(predecessors(*instructions).with_prefix(place(line)));
    text_ += '}';
    end_line(line);
    return ok_status();
  }

  Status predecessors(const std::vector<const wire::HloInstructionProto*>& instructions) {
    for (const auto* instruction : instructions)
      for (int64_t id : instruction->control_predecessor_ids()) {
        const auto it = places_.find(key(id));
        const size_t number = places_.at(key(instruction->id())).number;
        if (it == places_.end() || it->second.number >= number)
          return invalid_argument("instruction " + shown(instruction->name()) +
                                  ": field 'control_predecessor_ids': there is no instruction " + std::to_string(id) +
                                  " before this one");
        predecessors_[number].push_back(it->second.number);
      }
    return ok_status();
  }

  Status instruction_text(Line line) {
    const auto& in = *line.instruction;
    const Op op = op_named(in.opcode());
    if (op == Op::INVALID) return invalid_argument("field 'opcode': there is no opcode " + shown(in.opcode()));
    Expected<Shape> shape = from_wire(in.shape());
    if (!shape.ok()) return shape.status().with_prefix("field 'shape': ");
    if (in.has_sharding()) {
      Expected<Sharding> sharding = from_wire(in.sharding());
      if (!sharding.ok()) return sharding.status().with_prefix("field 'sharding': ");
      shardings_.push_back(std::move(*sharding));
      line.sharding = &shardings_.back();
    }
    text_ += key(in.id()) == key(line.computation->root_id()) ? "ROOT %i" : "%i";
    text_ += std::to_string(lines_.size()) + " = ";
    text::write_shape(text_, *shape, true);
    text_ += ' ';
    text_ += op_info(op).text;
    text_ += '(';
    std::vector<Shape> shapes;
    COLLET_TRY(operands(line, op, *shape, shapes));
    text_ += ')';
    COLLET_TRY(write_attributes(in, op, shapes, text_));
    COLLET_TRY(regions(in, op, shapes.empty() ? Type::Invalid : shapes[0].type()));
    places_.emplace(key(in.id()), Place{lines_.size(), *shape});
    end_line(std::move(line));
    return ok_status();
  }

  Status operands(Line& line, Op op, const Shape& shape, std::vector<Shape>& shapes) {
    const auto& in = *line.instruction;
    if (op == Op::PARAMETER) text::write(text_, in.parameter_number());
    if (op == Op::CONSTANT) {
      Expected<Literal> value = from_wire(in.literal(), &shape);
      if (!value.ok()) return value.status().with_prefix("field 'literal': ");
      // The data of the constant is set later.
      if (shape.is_array() && shape.rank() > 0)
        text_ += "{...}";
      else
        text::write_literal(text_, *value, true, false);
      line.literal = std::move(*value);
    }
    if ((op == Op::PARAMETER || op == Op::CONSTANT) && in.operand_ids_size())
      return invalid_argument("field 'operand_ids': there are operands");
    for (int i = 0; i < in.operand_ids_size(); ++i) {
      const auto it = places_.find(key(in.operand_ids(i)));
      if (it == places_.end())
        return invalid_argument("field 'operand_ids': there is no instruction " + std::to_string(in.operand_ids(i)) +
                                " before this one");
      shapes.push_back(it->second.shape);
      text_ += (i ? ", %i" : "%i") + std::to_string(it->second.number);
    }
    return ok_status();
  }

  Status regions(const wire::HloInstructionProto& in, Op op, Type first) {
    std::vector<std::string> names;
    for (int64_t id : in.called_computation_ids()) {
      const auto it = computation_number_.find(id);
      if (it == computation_number_.end())
        return invalid_argument("field 'called_computation_ids': there is no computation " + std::to_string(id));
      names.push_back("%c" + std::to_string(it->second));
    }
    const auto each = [&](std::initializer_list<std::string_view> keys) -> Status {
      if (names.size() != keys.size())
        return invalid_argument("field 'called_computation_ids' has " + std::to_string(names.size()) + " entries");
      size_t i = 0;
      for (std::string_view key : keys) (text_ += key) += names[i++];
      return ok_status();
    };
    const auto list = [&](std::string_view key) {
      text_ += key;
      for (size_t i = 0; i < names.size(); ++i) text_ += (i ? ", " : "") + names[i];
      text_ += '}';
      return ok_status();
    };
    // Update and done ops use the computation of their start.
    if (op == Op::ASYNC_UPDATE || op == Op::ASYNC_DONE) return ok_status();
    switch (op_info(op).regions) {
      case Regions::NONE:
        if (names.empty()) return ok_status();
        return invalid_argument("field 'called_computation_ids': the op calls none");
      case Regions::TO_APPLY:
        if (names.empty()) return ok_status();  // the text reader reports an error if it is needed
        return each({", to_apply="});
      case Regions::CONDITION_BODY:
        // In the message the body comes first.
        if (names.size() == 2) std::swap(names[0], names[1]);
        return each({", condition=", ", body="});
      case Regions::SELECT_SCATTER:
        return each({", select=", ", scatter="});
      case Regions::CALLS:
        return each({", calls="});
      case Regions::CUSTOM:
        return names.empty() ? ok_status() : list(", called_computations={");
      case Regions::BRANCHES:
        if (first == Type::PRED) return each({", true_computation=", ", false_computation="});
        return list(", branch_computations={");
    }
    return ok_status();
  }

  // ---- what text only carries ----

  static size_t number_of(std::string_view name) {
    size_t out = 0;
    std::from_chars(name.data() + 1, name.data() + name.size(), out);
    return out;
  }

  const Extras* extras(const wire::HloInstructionProto& in, const Line& line, const Shape& shape, Module& module,
                       const std::vector<InstrId>& by_number) const {
    auto* out = module.make<Extras>();
    const auto before = predecessors_.find(static_cast<size_t>(&line - lines_.data()));
    std::string_view config = in.backend_config();
    if (in.backend_config_payload().has_value()) config = in.backend_config_payload().value();
    if (const auto& payload = in.backend_config_payload();
        payload.has_id() && payload.id() >= 0 && payload.id() < in_.payloads_size())
      config = in_.payloads(static_cast<int>(payload.id()));
    const Metadata* metadata = in.has_metadata() ? read_metadata(in.metadata(), module) : nullptr;
    const std::string origin = origin_text(in.original_value(), shape);
    const std::string statistics = statistics_text(in.statistics_viz());
    const bool any = metadata || !origin.empty() || !statistics.empty() || line.sharding ||
                     in.frontend_attributes().map_size() || !config.empty() || in.has_parameter_replication() ||
                     in.has_result_accuracy() || before != predecessors_.end();
    if (!any) return nullptr;
    out->metadata = metadata;
    if (line.sharding) out->sharding = module.keep(*line.sharding);
    out->frontend_attributes = module.arena().list(read_frontend(in.frontend_attributes(), module));
    out->origin = module.arena().string(origin);
    out->statistics = module.arena().string(statistics);
    out->backend_config = module.arena().string(config);
    out->backend_config_is_json = is_dictionary(config);
    // This field is descriptive only, so it is dropped if it does not fit.
    if (const int n = in.parameter_replication().replicated_at_leaf_buffers_size(); n && n == shape.leaf_count()) {
      const auto& list = in.parameter_replication().replicated_at_leaf_buffers();
      const auto copy = std::make_unique<bool[]>(static_cast<size_t>(n));
      std::copy(list.begin(), list.end(), copy.get());
      out->parameter_replication = module.arena().list<const bool>({copy.get(), static_cast<size_t>(n)});
    }
    if (in.has_result_accuracy()) out->result_accuracy = read_accuracy(in.result_accuracy(), module);
    if (before != predecessors_.end()) {
      std::vector<InstrId> ids;
      for (size_t number : before->second) ids.push_back(by_number[number]);
      out->control_predecessors = module.arena().list(ids);
    }
    return out;
  }

  void dress(Module& module) {
    module.set_name(in_.name());
    module.header().frontend_attributes = read_frontend(in_.frontend_attributes(), module);
    std::vector<InstrId> by_number(lines_.size(), InstrId::None);
    for (CompId c : module.computations())
      for (InstrId id : module[c].order) by_number[number_of(module[id].name)] = id;
    for (CompId c : module.computations()) {
      const auto& from = in_.computations(static_cast<int>(number_of(module[c].name)));
      module[c].name = module.arena().string(from.name());
      module[c].execution_thread =
          from.execution_thread() == "main" ? "" : module.arena().string(from.execution_thread());
      module[c].line = 0;
      for (InstrId id : module[c].order) {
        Instruction& instr = module[id];
        Line& line = lines_[number_of(instr.name)];
        if (instr.op == Op::CONSTANT) module.literal(instr.as<ConstantAttrs>().constant) = std::move(line.literal);
        instr.name = module.arena().string(line.instruction->name());
        module.note_name(instr.name);
        instr.line = 0;
        if (const Extras* e = extras(*line.instruction, line, instr.shape, module, by_number)) {
          instr.extras = e;
          copy_extras_into_record(module, id);
        }
      }
    }
  }

  const wire::HloModuleProto& in_;
  std::string text_;
  std::vector<Line> lines_;  // one entry for each line of text_
  std::unordered_map<int64_t, size_t> computation_number_;
  std::unordered_map<int64_t, const wire::HloScheduleProto::InstructionSequence*> schedule_;
  std::unordered_map<int64_t, Place> places_;  // for the current computation, by key(id)
  int64_t key_mask_ = -1;                      // the bits of ids that key() compares
  std::unordered_map<size_t, std::vector<size_t>> predecessors_;
  std::deque<Sharding> shardings_;
  bool entry_seen_ = false;
};

template <typename Message>
bool parse(std::string_view bytes, Message& out) {
  return bytes.size() <= std::numeric_limits<int>::max() &&
         out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace
}  // namespace proto

Expected<std::unique_ptr<Module>> read_proto(std::string_view bytes) {
  // The kinds of messages are distinguished by their fields: the module's name is in the place where other messages
  // have a nested message.
  wire::HloModuleProto module;
  if (proto::parse(bytes, module) && module.computations_size()) return proto::Reader(module).run();
  wire::HloProto hlo;  // HloUnoptimizedSnapshot has the module in the same field
  if (proto::parse(bytes, hlo) && hlo.hlo_module().computations_size()) return proto::Reader(hlo.hlo_module()).run();
  wire::HloSnapshot snapshot;
  if (proto::parse(bytes, snapshot) && snapshot.hlo().hlo_module().computations_size())
    return proto::Reader(snapshot.hlo().hlo_module()).run();
  return invalid_argument("these bytes are no HloModuleProto, HloProto or HloSnapshot with a computation");
}

Expected<Snapshot> read_snapshot_values(std::string_view bytes) {
  wire::HloSnapshot in;
  if (!proto::parse(bytes, in) || !in.hlo().hlo_module().computations_size())
    return invalid_argument("these bytes are no HloSnapshot");
  Snapshot out;
  for (const auto& argument : in.arguments()) {
    COLLET_ASSIGN(Literal value, proto::from_wire(argument));
    out.arguments.push_back(std::move(value));
  }
  if (in.has_result()) {
    COLLET_ASSIGN(out.result, proto::from_wire(in.result()));
  }
  out.platform = in.execution_platform();
  return out;
}

}  // namespace collet::hlo

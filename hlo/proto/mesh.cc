// SPDX-License-Identifier: Apache-2.0
#include "hlo/proto/mesh.h"

#include <charconv>
#include <limits>

#include "hlo/ir/named_sharding.h"
#include "hlo/ir/scanner.h"
#include "hlo/text/parser.h"
#include "hlo/text/writer.h"

namespace collet::hlo::proto {
namespace {

using Axes = google::protobuf::RepeatedPtrField<wire::AxisRefProto>;

Status unreadable(std::string_view what, std::string_view text) {
  return invalid_argument(std::string(what) + " is not understood: " + std::string(text.substr(0, 200)));
}

// ---- text to message ----

bool read_name(Scanner& in, std::string& out) {
  return in.quoted(in.is('"') ? '"' : '\'', out);
}

bool read_mesh(Scanner& in, wire::MeshProto* out) {
  if (in.eat("maximal_mesh")) {
    int64_t device = 0;
    if (!in.eat('[') || !in.eat("device_id") || !in.eat('=') || !in.number(device) || !in.eat(']')) return false;
    out->add_device_ids(device);
    return true;
  }
  if (!in.eat("mesh") || !in.eat('[')) return false;
  while (!in.eat(']')) {
    auto* axis = out->add_axes();
    int64_t size = 0;
    if (!read_name(in, *axis->mutable_name()) || !in.eat('=') || !in.number(size)) return false;
    axis->set_size(size);
    in.eat(',');
  }
  return true;
}

bool read_devices(Scanner& in, wire::MeshProto* out) {
  if (!in.eat('=') || !in.eat('(')) return false;
  if (!in.eat('[')) return in.numbers(')', out->mutable_device_ids());
  auto* iota = out->mutable_iota_transform();
  if (!in.numbers(']', iota->mutable_reshape_dims())) return false;
  if (!in.eat('T')) {
    for (int i = 0; i < iota->reshape_dims_size(); ++i) iota->add_transpose_perm(i);
    return in.eat(')');
  }
  return in.eat('(') && in.numbers(')', iota->mutable_transpose_perm()) && in.eat(')');
}

bool read_axis(Scanner& in, const wire::MeshProto& mesh, wire::AxisRefProto* out) {
  std::string name;
  if (!read_name(in, name)) return false;
  int axis = 0;
  while (axis < mesh.axes_size() && mesh.axes(axis).name() != name) ++axis;
  if (axis == mesh.axes_size()) {  // the axis may be given by its number
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), axis);
    if (error != std::errc() || end != name.data() + name.size() || axis < 0 || axis >= mesh.axes_size()) return false;
  }
  out->set_mesh_axis_index(axis);
  if (!in.eat(':')) return true;
  int64_t before = 0, size = 0;
  if (!in.eat('(') || !in.number(before) || !in.eat(')') || !in.number(size)) return false;
  out->mutable_sub_axis_info()->set_pre_size(before);
  out->mutable_sub_axis_info()->set_size(size);
  return true;
}

// Reads an axis list such as {'x', 'y':(1)2, ?}.
bool read_axes(Scanner& in, const wire::MeshProto& mesh, Axes* out, bool* open = nullptr) {
  if (!in.eat('{')) return false;
  while (!in.eat('}')) {
    if (open && in.eat('?'))
      *open = true;
    else if (!read_axis(in, mesh, out->Add()))
      return false;
    in.eat(',');
  }
  return true;
}

bool read_dimensions(Scanner& in, wire::NamedShardingProto* out) {
  while (!in.eat(']')) {
    auto* dimension = out->add_dim_shardings();
    bool open = false;
    if (!read_axes(in, out->mesh(), dimension->mutable_axes(), &open)) return false;
    dimension->set_is_closed(!open);
    in.eat(',');
  }
  return true;
}

bool read_named(Scanner& in, wire::NamedShardingProto* out) {
  if (!read_mesh(in, out->mutable_mesh())) return false;
  while (!in.at_end()) {
    in.eat(',');
    if (in.eat('[')) {
      if (!read_dimensions(in, out)) return false;
      continue;
    }
    const std::string_view word = in.word();
    if (word == "device_ids") {
      if (!read_devices(in, out->mutable_mesh())) return false;
      continue;
    }
    const bool has_value = in.eat('=');
    if (word == "replicated" && !has_value) continue;
    if (!has_value) return false;
    if (word == "metadata") {
      std::string_view text;
      if (!in.braces(text) || !metadata_to_wire(text, out->mutable_metadata()).ok()) return false;
      continue;
    }
    Axes* axes = word == "replicated"  ? out->mutable_replicated_axes()
                 : word == "unreduced" ? out->mutable_unreduced_axes()
                 : word == "manual"    ? out->mutable_manual_axes()
                                       : nullptr;
    if (!axes || !read_axes(in, out->mesh(), axes)) return false;
  }
  return true;
}

bool read_metadata(Scanner& in, wire::OpMetadata* out) {
  if (!in.eat('{')) return false;
  while (!in.eat('}')) {
    const std::string_view name = in.word();
    if (!in.eat('=')) return false;
    if (name == "profile_type") {
      if (!in.eat('{') || !in.numbers('}', out->mutable_profile_type())) return false;
      continue;
    }
    if (in.is('"')) {
      std::string text;
      if (!in.quoted('"', text)) return false;
      if (name == "op_type") out->set_op_type(text);
      if (name == "op_name") out->set_op_name(text);
      if (name == "source_file") out->set_source_file(text);
      if (name == "deduplicated_name") out->set_deduplicated_name(text);
      if (name == "scheduling_name") out->set_scheduling_name(text);
    } else {
      int64_t number = 0;
      if (!in.number(number)) return false;
      const int32_t value = described(number);
      if (name == "source_line") out->set_source_line(value);
      if (name == "source_end_line") out->set_source_end_line(value);
      if (name == "source_column") out->set_source_column(value);
      if (name == "source_end_column") out->set_source_end_column(value);
      if (name == "stack_frame_id") out->set_stack_frame_id(value);
    }
    in.eat(',');
  }
  return true;
}

// ---- message to text ----

Status write_mesh(const wire::MeshProto& in, std::string& out) {
  if (in.axes_size() == 0 && in.device_ids_size() == 1) {
    out += "maximal_mesh[device_id=" + std::to_string(in.device_ids(0)) + "]";
    return ok_status();
  }
  out += "mesh[";
  for (int i = 0; i < in.axes_size(); ++i) {
    const std::string& name = in.axes(i).name();
    if (name.find_first_of("'\n") != std::string::npos)
      return invalid_argument("field 'mesh': an axis has a quote in its name");
    out += (i ? ",'" : "'") + name + "'=" + std::to_string(in.axes(i).size());
  }
  out += ']';
  if (in.device_ids_size() == 0 && !in.has_iota_transform()) return ok_status();
  out += ", device_ids=(";
  if (in.has_iota_transform()) {
    const auto& iota = in.iota_transform();
    out += '[';
    text::write_list(out, {iota.reshape_dims().data(), static_cast<size_t>(iota.reshape_dims_size())});
    out += ']';
    if (iota.transpose_perm_size() > 1) {
      out += "T(";
      text::write_list(out, {iota.transpose_perm().data(), static_cast<size_t>(iota.transpose_perm_size())});
      out += ')';
    }
  } else {
    text::write_list(out, {in.device_ids().data(), static_cast<size_t>(in.device_ids_size())});
  }
  out += ')';
  return ok_status();
}

Status write_axes(const wire::MeshProto& mesh, const Axes& axes, std::string_view separator, std::string& out) {
  for (int i = 0; i < axes.size(); ++i) {
    const int64_t axis = axes[i].mesh_axis_index();
    if (axis < 0 || axis >= mesh.axes_size())
      return invalid_argument("field 'mesh_axis_index': the mesh has no axis " + std::to_string(axis));
    if (i) out += separator;
    out += "'" + mesh.axes(static_cast<int>(axis)).name() + "'";
    if (!axes[i].has_sub_axis_info()) continue;
    const auto& part = axes[i].sub_axis_info();
    out += ":(" + std::to_string(part.pre_size()) + ")" + std::to_string(part.size());
  }
  return ok_status();
}

void write_metadata(const wire::OpMetadata& in, std::string& out) {
  out += '{';
  const auto name = [&](std::string_view text) {
    if (out.back() != '{') out += ' ';
    (out += text) += '=';
  };
  const auto string = [&](std::string_view text, const std::string& value) {
    if (value.empty()) return;
    name(text);
    text::write_string(out, value);
  };
  const auto number = [&](std::string_view text, int64_t value) {
    if (value == 0) return;
    name(text);
    text::write(out, value);
  };
  string("op_type", in.op_type());
  string("op_name", in.op_name());
  string("source_file", in.source_file());
  number("source_line", in.source_line());
  number("source_end_line", in.source_end_line());
  number("source_column", in.source_column());
  number("source_end_column", in.source_end_column());
  const auto& types = in.profile_type_size() ? in.profile_type() : in.profile_info().profile_type();
  if (types.size()) {
    name("profile_type");
    text::write_braces(out, std::vector<int64_t>(types.begin(), types.end()));
  }
  string("deduplicated_name", in.deduplicated_name());
  string("scheduling_name", in.scheduling_name());
  number("stack_frame_id", in.stack_frame_id());
  out += '}';
}

}  // namespace

Status named_to_wire(std::string_view text, wire::NamedShardingProto* out) {
  Scanner in(text);
  return read_named(in, out) ? ok_status() : unreadable("the sharding", text);
}

Expected<std::string> named_text(const wire::NamedShardingProto& in) {
  std::string out;
  COLLET_TRY(write_mesh(in.mesh(), out));
  if (in.mesh().axes_size() == 0 && in.mesh().device_ids_size() == 1) return out;
  if (in.dim_shardings_size()) {
    out += ", [";
    for (int i = 0; i < in.dim_shardings_size(); ++i) {
      const auto& dimension = in.dim_shardings(i);
      out += i ? ", {" : "{";
      COLLET_TRY(write_axes(in.mesh(), dimension.axes(), ", ", out));
      if (!dimension.is_closed()) out += dimension.axes_size() ? ", ?" : "?";
      out += '}';
    }
    out += ']';
  }
  const auto list = [&](std::string_view name, const Axes& axes) -> Status {
    if (axes.empty()) return ok_status();
    ((out += ", ") += name) += "={";
    COLLET_TRY(write_axes(in.mesh(), axes, ", ", out));
    out += '}';
    return ok_status();
  };
  if (!in.dim_shardings_size() && !in.replicated_axes_size() && !in.unreduced_axes_size() && !in.manual_axes_size())
    out += ", replicated";
  COLLET_TRY(list("replicated", in.replicated_axes()));
  COLLET_TRY(list("unreduced", in.unreduced_axes()));
  COLLET_TRY(list("manual", in.manual_axes()));
  if (in.metadata_size()) out += ", metadata=" + metadata_text(in.metadata(), true);
  if (!is_named_sharding(out)) return invalid_argument("field 'named_sharding': no sharding is " + out.substr(0, 200));
  return out;
}

Status mesh_groups_to_wire(std::string_view text, wire::MeshAxesReplicaGroupListProto* out) {
  Scanner in(text);
  bool good = read_mesh(in, out->mutable_mesh());
  if (good && in.eat(',')) good = in.eat("device_ids") && read_devices(in, out->mutable_mesh());
  in.eat(',');
  good = good && read_axes(in, out->mesh(), out->mutable_axes()) && in.at_end();
  return good ? ok_status() : unreadable("the list of replica groups", text);
}

Expected<std::string> mesh_groups_text(const wire::MeshAxesReplicaGroupListProto& in) {
  std::string out;
  COLLET_TRY(write_mesh(in.mesh(), out));
  out += " {";
  COLLET_TRY(write_axes(in.mesh(), in.axes(), ",", out));
  return out + "}";
}

Status metadata_to_wire(std::string_view text, MetadataList* out) {
  Scanner in(text);
  Scanner inside(text);
  inside.eat('{');
  bool good = true;
  if (!inside.is('{')) {
    good = read_metadata(in, out->Add());
  } else {
    in.eat('{');
    while (good && !in.eat('}')) {
      good = read_metadata(in, out->Add());
      in.eat(',');
    }
  }
  return good && in.at_end() ? ok_status() : unreadable("the metadata of a sharding", text);
}

std::string metadata_text(const MetadataList& in, bool always_a_list) {
  std::string out;
  const bool list = always_a_list || in.size() != 1;
  if (list) out += '{';
  for (int i = 0; i < in.size(); ++i) {
    if (i) out += ", ";
    write_metadata(in[i], out);
  }
  if (list) out += '}';
  return out;
}

Status domain_to_wire(std::string_view text, wire::HloInstructionProto& out) {
  Scanner in(text);
  bool good = in.eat('{');
  while (good && !in.eat('}')) {
    const std::string_view name = in.word();
    good = in.eat('=');
    std::string kind;
    std::string_view sharding;
    if (name == "kind") {
      good = good && in.quoted('"', kind);
    } else {
      good = good && in.braces(sharding);
      if (!good) break;
      COLLET_ASSIGN(const Sharding value, parse_sharding(sharding));
      // In text, entry and exit are named from the users' point of view, in the message from the operand's.
      COLLET_TRY(
          to_wire(value, name == "entry" ? out.mutable_domain_exit_sharding() : out.mutable_domain_entry_sharding()));
    }
    in.eat(',');
  }
  return good ? ok_status() : unreadable("the domain", text);
}

}  // namespace collet::hlo::proto

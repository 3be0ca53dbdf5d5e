// SPDX-License-Identifier: Apache-2.0
#include "hlo/ir/shardy.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace collet::hlo {
namespace {

// Most devices of one mesh.
constexpr int64_t kMostDevices = int64_t{1} << 20;

/// Reads the text of the attributes.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool accept(std::string_view word) {
    while (text_.starts_with(' ') || text_.starts_with('\n')) text_.remove_prefix(1);
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  bool string(std::string* out) {
    if (!accept("\"")) return false;
    const size_t end = text_.find('"');
    if (end == std::string_view::npos) return false;
    *out = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return true;
  }
  bool integer(int64_t* out) {
    accept("");
    const auto [end, bad] = std::from_chars(text_.data(), text_.data() + text_.size(), *out);
    if (bad != std::errc()) return false;
    text_.remove_prefix(static_cast<size_t>(end - text_.data()));
    return true;
  }
  bool at_end() {
    accept("");
    return text_.empty();
  }
  /// Reads a symbol after its @, or a name.
  std::string symbol() {
    std::string quoted;
    if (string(&quoted)) return quoted;
    const size_t end = std::min(text_.find_first_of(", >=}"), text_.size());
    std::string out(text_.substr(0, end));
    text_.remove_prefix(end);
    return out;
  }

 private:
  std::string_view text_;
};

bool read_mesh(Reader& r, NamedMesh* out) {
  r.accept("#sdy.");
  r.accept("mesh");
  if (!r.accept("<") || !r.accept("[")) return false;
  int64_t devices = 1;
  while (!r.accept("]")) {
    std::string name;
    int64_t size = 0;
    if (!r.string(&name) || !r.accept("=") || !r.integer(&size) || size < 1 || size > kMostDevices / devices)
      return false;
    devices *= size;
    out->axes.emplace_back(std::move(name), size);
    r.accept(",");
  }
  if (r.accept(",")) {
    if (!r.accept("device_ids") || !r.accept("=") || !r.accept("[")) return false;
    while (!r.accept("]")) {
      int64_t id = 0;
      if (!r.integer(&id)) return false;
      out->device_ids.push_back(id);
      r.accept(",");
    }
    // A mesh without axes has one device, which may have any id. Else the ids must be a permutation.
    if (static_cast<int64_t>(out->device_ids.size()) != devices) return false;
    std::vector<bool> seen(static_cast<size_t>(devices));
    for (int64_t id : out->device_ids) {
      if (out->axes.empty() && id >= 0) break;
      if (id < 0 || id >= devices || seen[static_cast<size_t>(id)]) return false;
      seen[static_cast<size_t>(id)] = true;
    }
  }
  return r.accept(">");
}

// Reads an axis: "x", or a part of one: "x":(1)2.
bool read_axis(Reader& r, NamedSharding::Axis* out) {
  if (!r.string(&out->name)) return false;
  if (!r.accept(":")) return true;
  return r.accept("(") && r.integer(&out->before) && r.accept(")") && r.integer(&out->size) && out->before > 0 &&
         out->size > 0;
}

bool read_axes(Reader& r, std::vector<NamedSharding::Axis>* out, bool* open) {
  if (!r.accept("{")) return false;
  while (!r.accept("}")) {
    NamedSharding::Axis axis;
    if (read_axis(r, &axis))
      out->push_back(std::move(axis));
    else if (open && r.accept("?"))
      *open = true;
    else
      return false;
    r.accept(",");
  }
  return true;
}

bool read_sharding(Reader& r, NamedSharding* out) {
  r.accept("#sdy.sharding");
  if (!r.accept("<")) return false;
  if (r.accept("@")) {
    out->mesh = r.symbol();
  } else {
    out->inline_mesh.emplace();
    if (!read_mesh(r, &*out->inline_mesh)) return false;
  }
  if (!r.accept(",") || !r.accept("[")) return false;
  while (!r.accept("]")) {
    NamedSharding::Dimension dimension;
    if (!read_axes(r, &dimension.axes, &dimension.open)) return false;
    int64_t priority = 0;
    if (r.accept("p") && !r.integer(&priority)) return false;
    out->dimensions.push_back(std::move(dimension));
    r.accept(",");
  }
  while (r.accept(",")) {
    const bool replicated = r.accept("replicated");
    if (!replicated && !r.accept("unreduced")) return false;
    std::vector<NamedSharding::Axis> axes;
    if (!r.accept("=") || !read_axes(r, &axes, nullptr)) return false;
    if (!replicated) out->unreduced = std::move(axes);
  }
  return r.accept(">");
}

/// Brings a reshape and permutation to its shortest form: drops dimensions of size 1, and merges dimensions that stay adjacent.
void shorten(std::vector<int64_t>& dims, std::vector<int64_t>& permutation) {
  std::vector<std::pair<int64_t, int64_t>> runs;  // in the permutation's order: first dimension, size
  int64_t previous = -2;
  const auto next_real = [&](int64_t d) {
    for (++d; d < static_cast<int64_t>(dims.size()) && dims[static_cast<size_t>(d)] == 1;) ++d;
    return d;
  };
  for (int64_t d : permutation) {
    if (dims[static_cast<size_t>(d)] == 1) continue;
    if (previous >= 0 && next_real(previous) == d)
      runs.back().second *= dims[static_cast<size_t>(d)];
    else
      runs.emplace_back(d, dims[static_cast<size_t>(d)]);
    previous = d;
  }
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return runs[a].first < runs[b].first; });
  dims.clear();
  permutation.assign(runs.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    dims.push_back(runs[order[i]].second);
    permutation[order[i]] = static_cast<int64_t>(i);
  }
}

}  // namespace

int64_t NamedMesh::devices() const {
  int64_t out = 1;
  for (const auto& [name, size] : axes) out *= size;
  return out;
}

size_t NamedMesh::find(std::string_view name) const {
  const auto it = std::find_if(axes.begin(), axes.end(), [&](const auto& axis) { return axis.first == name; });
  return static_cast<size_t>(it - axes.begin());
}

std::optional<NamedMesh> parse_mesh(std::string_view text) {
  Reader r(text);
  NamedMesh out;
  if (!read_mesh(r, &out)) return std::nullopt;
  return out;
}

std::optional<NamedMesh> find_mesh(std::string_view meshes, std::string_view name) {
  Reader r(meshes);
  if (!r.accept("{")) return std::nullopt;
  while (!r.accept("}")) {
    const std::string here = r.symbol();
    NamedMesh mesh;
    if (here.empty() || !r.accept("=") || !read_mesh(r, &mesh)) return std::nullopt;
    if (here == name) return mesh;
    r.accept(",");
  }
  return std::nullopt;
}

std::optional<NamedSharding> parse_named_sharding(std::string_view text) {
  Reader r(text);
  NamedSharding out;
  if (!read_sharding(r, &out)) return std::nullopt;
  return out;
}

std::optional<std::vector<NamedSharding>> parse_sharding_list(std::string_view text) {
  Reader r(text);
  const bool framed = r.accept("#sdy.sharding_per_value<");
  std::vector<NamedSharding> out;
  if (!r.accept("[")) return std::nullopt;
  while (!r.accept("]")) {
    if (!read_sharding(r, &out.emplace_back())) return std::nullopt;
    r.accept(",");
  }
  if (framed && !r.accept(">")) return std::nullopt;
  return r.at_end() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<std::string>> parse_axis_names(std::string_view text) {
  Reader r(text);
  std::vector<std::string> out;
  const bool framed = r.accept("#sdy<manual_axes");
  if (!r.accept("{")) return std::nullopt;
  while (!r.accept("}")) {
    std::string name;
    if (!r.string(&name)) return std::nullopt;
    out.push_back(std::move(name));
    r.accept(",");
  }
  if (framed && !r.accept(">")) return std::nullopt;
  return r.at_end() ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<std::vector<AxisPart>> resolve_unreduced(const NamedSharding& sharding, const NamedMesh& mesh) {
  NamedSharding alone;
  alone.dimensions.push_back({sharding.unreduced, false});
  const auto out = resolve_axes(alone, mesh);
  if (!out) return std::nullopt;
  std::vector<AxisPart> parts = (*out)[0];
  std::sort(parts.begin(), parts.end(), [](const AxisPart& a, const AxisPart& b) {
    return a.axis != b.axis ? a.axis < b.axis : a.before < b.before;
  });
  return parts;
}

std::optional<std::vector<std::vector<AxisPart>>> resolve_axes(const NamedSharding& sharding, const NamedMesh& mesh) {
  std::vector<std::vector<AxisPart>> out;
  std::vector<AxisPart> used;
  for (const NamedSharding::Dimension& dimension : sharding.dimensions) {
    std::vector<AxisPart>& parts = out.emplace_back();
    for (const NamedSharding::Axis& axis : dimension.axes) {
      AxisPart part{mesh.find(axis.name), axis.before, axis.size};
      if (part.axis == mesh.axes.size()) return std::nullopt;
      const int64_t whole = mesh.axes[part.axis].second;
      if (part.size == 0) part.size = whole;
      if (part.size > whole || part.before > whole || whole % (part.before * part.size)) return std::nullopt;
      for (const AxisPart& other : used)
        if (other.axis == part.axis && part.before < other.before * other.size &&
            other.before < part.before * part.size)
          return std::nullopt;
      used.push_back(part);
      parts.push_back(part);
    }
  }
  return out;
}

std::optional<Sharding> to_hlo_sharding(const NamedMesh& mesh, const std::vector<std::vector<AxisPart>>& dimensions) {
  Sharding out;
  if (mesh.axes.empty() && mesh.device_ids.size() == 1) {
    out.kind = Sharding::Kind::Maximal;
    out.device = mesh.device_ids[0];
    return out;
  }
  std::vector<bool> used(mesh.axes.size());
  std::vector<int64_t> sizes, permutation;
  for (const auto& [name, size] : mesh.axes) sizes.push_back(size);
  const int64_t devices = mesh.devices();
  int64_t tiles = 1;
  for (const std::vector<AxisPart>& axes : dimensions) {
    int64_t split = 1;
    for (const AxisPart& part : axes) {
      if (part.size != sizes[part.axis]) return std::nullopt;
      split *= part.size;
      used[part.axis] = true;
      permutation.push_back(static_cast<int64_t>(part.axis));
    }
    tiles *= split;
    out.tile_dims.push_back(split);
  }
  if (tiles == 1) return Sharding();
  for (size_t axis = 0; axis < sizes.size(); ++axis)
    if (!used[axis]) permutation.push_back(static_cast<int64_t>(axis));
  out.kind = Sharding::Kind::Tiled;
  out.last_tile_dim_replicate = tiles < devices;
  if (tiles < devices) out.tile_dims.push_back(devices / tiles);
  if (mesh.device_ids.empty()) {
    out.iota = true;
    shorten(sizes, permutation);
    out.reshape = std::move(sizes);
    out.permutation = std::move(permutation);
    return out;
  }
  // For each position in the transposed grid, its position in the mesh.
  std::vector<int64_t> index(sizes.size());
  for (int64_t n = 0; n < devices; ++n) {
    int64_t rest = n, place = 0;
    for (size_t i = permutation.size(); i-- > 0;) {
      const auto axis = static_cast<size_t>(permutation[i]);
      index[axis] = rest % sizes[axis];
      rest /= sizes[axis];
    }
    for (size_t axis = 0; axis < sizes.size(); ++axis) place = place * sizes[axis] + index[axis];
    out.devices.push_back(mesh.device_ids[static_cast<size_t>(place)]);
  }
  return out;
}

std::vector<int64_t> places_of_devices(const NamedMesh& mesh) {
  std::vector<int64_t> out(static_cast<size_t>(mesh.devices()));
  for (size_t place = 0; place < out.size(); ++place) {
    const int64_t device = mesh.device_ids.empty() ? static_cast<int64_t>(place) : mesh.device_ids[place];
    if (device >= 0 && device < static_cast<int64_t>(out.size()))
      out[static_cast<size_t>(device)] = static_cast<int64_t>(place);
  }
  return out;
}

}  // namespace collet::hlo

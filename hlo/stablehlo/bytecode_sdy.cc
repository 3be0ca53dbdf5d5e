// SPDX-License-Identifier: Apache-2.0
#include "hlo/stablehlo/bytecode_cursor.h"

// Decodes Shardy's attributes into their text, in which form programs keep them.

namespace collet::hlo::mlir {
namespace {

// Largest text of one attribute. Attributes that refer to others by number could otherwise grow exponentially.
constexpr size_t kLongestSharding = size_t{1} << 20;

/// Returns the text of an attribute as it is written inside another attribute of its dialect: "#sdy.sharding<@m, [{}]>"
/// becomes <@m, [{}]>.
std::string_view inner_text(AttrRef attr, std::string_view prefix) {
  std::string_view text = attr ? attr->text : std::string_view();
  if (text.starts_with(prefix)) text.remove_prefix(prefix.size());
  return text;
}

std::string joined(List<const AttrRef> items, std::string_view prefix = {}) {
  std::string out;
  for (AttrRef item : items) {
    if (!out.empty()) out += ", ";
    out += inner_text(item, prefix);
    if (out.size() > kLongestSharding) break;
  }
  return out;
}

std::string quoted_names(List<const AttrRef> items) {
  std::string out;
  for (AttrRef item : items) {
    out += (out.empty() ? "\"" : ", \"") + std::string(item ? item->text : "") + "\"";
    if (out.size() > kLongestSharding) break;
  }
  return out;
}

}  // namespace

/// Decodes an attribute of Shardy into the text that Shardy prints for it.
Expected<AttrRef> BytecodeAttributes::decode_sdy(Cursor& c) {
  const uint64_t offset = c.r.position();
  const uint64_t code = c.r.varint();
  std::string text;
  switch (code) {
    case 0:
      text = "#sdy<manual_axes{" + quoted_names(c.attrs()) + "}>";
      break;
    case 1: {
      text = "\"" + std::string(c.string()) + "\"=";
      text += std::to_string(c.r.svarint());
      break;
    }
    case 2: {
      text = "#sdy.mesh<[" + joined(c.attrs()) + "]";
      std::string ids;
      for (int64_t id : c.ints()) ids += (ids.empty() ? "" : ", ") + std::to_string(id);
      text += ids.empty() ? ">" : ", device_ids=[" + ids + "]>";
      break;
    }
    case 3: {
      const int64_t before = c.r.svarint(), size = c.r.svarint();
      text = ":(" + std::to_string(before) + ")" + std::to_string(size);
      break;
    }
    case 4: {
      text = "\"" + std::string(c.string()) + "\"";
      bool part;
      const uint64_t index = c.r.flagged_varint(&part);
      if (part) {
        COLLET_ASSIGN(AttrRef sub_axis, attr(index, c.depth + 1));
        text += inner_text(sub_axis, {});
      }
      break;
    }
    case 5: {
      const std::string axes = joined(c.attrs());
      const bool closed = c.r.byte() != 0;
      bool has_priority;
      const uint64_t priority = c.r.flagged_varint(&has_priority);
      text = "{" + axes + (closed ? "" : axes.empty() ? "?" : ", ?") + "}";
      if (has_priority) text += "p" + std::to_string(priority);
      break;
    }
    case 6:
    case 15: {
      const AttrRef mesh = c.attr();
      text = "#sdy.sharding<";
      text += mesh && mesh->kind == Attr::Kind::Symbol ? "@" + std::string(mesh->text)
                                                       : std::string(inner_text(mesh, "#sdy."));
      text += ", [" + joined(c.attrs()) + "]";
      if (const std::string axes = joined(c.attrs()); !axes.empty()) text += ", replicated={" + axes + "}";
      if (code == 15)
        if (const std::string axes = joined(c.attrs()); !axes.empty()) text += ", unreduced={" + axes + "}";
      text += ">";
      break;
    }
    case 7:
    case 16:
      text = "#sdy.sharding_per_value<[" + joined(c.attrs(), "#sdy.sharding") + "]>";
      break;
    default:
      text = "#sdy.undecoded";
  }
  if (text.size() > kLongestSharding) return bytecode_error(offset, "a sharding is too long");
  Attr* out = program_.make_attr(Attr::Kind::Raw);
  out->text = program_.arena().string(text);
  return AttrRef{out};
}

}  // namespace collet::hlo::mlir

// Writes and reads mckpt_manifest.json. The writer makes one fixed text (one file a line, ascending names),
// so that two runs that write the same bytes write the same manifest. The reader first compares the seal, the
// SHA-256 of everything before the last line, and then parses with all checks all the same: whoever can
// change the file can also make a seal that fits.
//
// Limits: a manifest of 1 GiB; names that stay in their folder (io/file/folder.h); sums that do not overlap
// and are inside their file.
#include "io/listing/manifest.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include "core/base/error.h"
#include "io/file/container.h"
#include "io/file/crc32.h"
#include "io/file/folder.h"
#include "io/file/path_stat.h"
#include "io/file/place.h"
#include "io/json/json.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kSchema = "mckpt.manifest/1";
constexpr i64 kMostBytes = i64{1} << 30;

// Eight hexadecimal digits, such as "0a1b2c3d".
u32 parse_hex(const JsonValue& value) {
  const std::string& text = value.string("CRC-32");
  u32 v = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), v, 16);
  if (text.size() != 8 || error != std::errc() || end != text.data() + 8)
    throw Error(Code::kBadJson, "a CRC-32 is not eight hexadecimal digits");
  return v;
}

// The last line, which seals all lines before it.
std::string seal(std::string_view body) {
  Sha256 sha;
  sha.update({reinterpret_cast<const u8*>(body.data()), body.size()});
  return cat("\"sha256\": \"", sha.hex_digest(), "\"}\n");
}

// Appends the entry of a file, as one line without its end.
void append(std::string& out, const ManifestFile& f) {
  out += "{\"name\": ";
  append_json_string(out, f.name);
  out += cat(", \"bytes\": ", f.bytes);
  if (!f.sha256.empty()) {
    out += cat(", \"sha256\": \"", f.sha256, "\"}");
    return;
  }
  out += cat(", \"rest_crc32\": \"", crc32_text(f.rest_crc32), "\", \"tensors\": [");
  for (std::size_t i = 0; i < f.sums.size(); i++)
    out += cat(i > 0 ? ", [" : "[", f.sums[i].offset, ", ", f.sums[i].bytes, ", \"",
               crc32_text(f.sums[i].crc32), "\"]");
  out += "]}";
}

// [offset, bytes, "crc32"]
SummedStretch parse_sum(const JsonValue& value) {
  const JsonValue::Array& parts = value.array("a checksum");
  if (parts.size() != 3) throw Error(Code::kBadJson, "a checksum is not a list of offset, bytes and CRC-32");
  return {
      .offset = parts[0].integer("offset"), .bytes = parts[1].integer("bytes"), .crc32 = parse_hex(parts[2])};
}

// An entry. Unknown fields are skipped; sums that overlap or leave the file are refused, so that whoever
// reads by them stays inside the file.
ManifestFile parse_file(const JsonValue& value) {
  ManifestFile f;
  for (const auto& [key, field] : value.object("a file")) {
    if (key == "name") {
      f.name = field.string(key);
      check_inside_name(f.name);
    } else if (key == "bytes") {
      f.bytes = field.integer(key);
    } else if (key == "sha256") {
      f.sha256 = field.string(key);
    } else if (key == "rest_crc32") {
      f.rest_crc32 = parse_hex(field);
    } else if (key == "tensors") {
      for (const JsonValue& sum : field.array(key)) f.sums.push_back(parse_sum(sum));
    }
  }
  i64 at = 0;
  for (const SummedStretch& s : f.sums) {
    if (s.bytes < 0 || s.offset < at || s.bytes > f.bytes - s.offset)
      throw Error(Code::kBadJson, "the ranges of checksums overlap or leave their file");
    at = s.offset + s.bytes;
  }
  if (f.name.empty() || f.bytes < 0) throw Error(Code::kBadJson, "a file has no name or no size");
  return f;
}

// is_below("hf_assets/config.json", "hf_assets")
bool is_below(std::string_view name, std::string_view folder) {
  return name.size() > folder.size() && name.starts_with(folder) && name[folder.size()] == '/';
}

// Adds the names of the files in the folder `below` of `folder`, and in those below it that files_of()
// enters.
void add_files(const Folder& folder, const std::string& below, const Manifest* manifest,
               std::vector<std::string>& names) {
  for (const FolderEntry& e : folder.entries(below)) {
    std::string name = below.empty() ? e.name : cat(below, "/", e.name);
    bool known = !manifest || std::ranges::any_of(manifest->files, [&](const ManifestFile& f) {
      return is_below(f.name, name);
    });
    if (e.folder && known)
      add_files(folder, name, manifest, names);
    else
      names.push_back(e.folder ? cat(name, "/") : name);
  }
}

}  // namespace

const ManifestFile* Manifest::find(std::string_view name) const {
  auto at = std::ranges::lower_bound(files, name, {}, &ManifestFile::name);
  return at != files.end() && at->name == name ? &*at : nullptr;
}

std::string Manifest::text() const {
  std::string out = cat("{\"schema\": \"", kSchema, "\", \"mckpt\": \"", version, "\", \"files\": [\n");
  for (const ManifestFile& f : files) {
    append(out, f);
    out += &f == &files.back() ? "\n" : ",\n";
  }
  out += "],\n";
  return out + seal(out);
}

Manifest parse_manifest(std::string_view text) {
  std::size_t sealed = text.size() - std::min(text.size(), seal("").size());
  if (sealed == 0 || text.substr(sealed) != seal(text.substr(0, sealed)))
    throw Error(Code::kBadManifest,
                "the manifest is not the one that mckpt wrote: its own SHA-256 does not match")
        .help("the file is damaged or was edited: copy it again from its source");
  Manifest manifest;
  JsonValue json = parse_json_list(text, "files", [&](const JsonListed& file) {
    try {
      manifest.files.push_back(parse_file(file.value));
    } catch (Error& e) {
      e.offset(file.offset);
      throw;
    }
  });
  for (const auto& [key, value] : json.object("the manifest")) {
    if (key == "schema" && value.string(key) != kSchema)
      throw Error(Code::kBadJson, cat("the schema is not ", kSchema)).found(escaped(value.string(key)));
    if (key == "mckpt") manifest.version = value.string(key);
    if (key == "files") static_cast<void>(value.array(key));  // throws for another type
  }
  if (std::ranges::adjacent_find(manifest.files, std::greater_equal{}, &ManifestFile::name) !=
      manifest.files.end())
    throw Error(Code::kBadJson, "the names of files are not in ascending order");
  return manifest;
}

std::optional<Manifest> read_manifest(const Folder& folder) {
  std::string name(kManifestName);
  if (!folder.has_file(name)) {
    if (!has_manifest(folder.path(), folder.opening())) return std::nullopt;
    throw Error(Code::kBadManifest, "the manifest is a link that leads nowhere")
        .file(cat(folder.path(), "/", name))
        .help("copy the file that it led to into the folder, or remove the link");
  }
  InputFile file = folder.open_file(name);
  return with_file(file.path(), [&] {
    if (file.size() > kMostBytes)
      throw Error(Code::kBadManifest, "the manifest is too large")
          .expected(cat("at most ", kMostBytes, " bytes"))
          .found(cat(file.size(), " bytes"));
    std::vector<u8> text = file.read(0, file.size());
    return parse_manifest({reinterpret_cast<const char*>(text.data()), text.size()});
  });
}

bool has_manifest(const std::string& path, const OpenOptions& opening) {
  std::string name = cat(path, "/", kManifestName);
  // The manifest beside the parts of an archive lists the parts.
  if (std::optional<PlaceInside> inside = find_inside(path, opening))
    return inside->container->find(cat(inside->name, inside->name.empty() ? "" : "/", kManifestName)) >= 0;
  return lstat_of(name).has_value();
}

ListedPlace listed_place(const std::string& path, const OpenOptions& opening) {
  if (is_folder(path, opening) || !is_file(path, opening)) return {path, ""};
  return {parent_folder(path), path.substr(path.rfind('/') + 1)};
}

std::vector<std::string> files_of(const Folder& folder, const Manifest* manifest) {
  std::vector<std::string> names;
  add_files(folder, "", manifest, names);
  std::ranges::sort(names);
  return names;
}

}  // namespace mckpt::impl

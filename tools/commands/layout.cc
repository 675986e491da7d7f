// mckpt layout: how Megatron-FSDP packs parameters of given shapes into one bucket.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "core/fsdp/flat_buffer.h"
#include "core/items/dtype.h"
#include "tools/commands/commands.h"
#include "tools/render/answer_json.h"
#include "tools/render/buffer_picture.h"
#include "tools/render/findings.h"
#include "tools/render/text_table.h"

namespace mckpt {
namespace {

constexpr i64 kMostRanges = i64{1} << 26;  // of one JSON answer

struct Layout {
  std::vector<Shape> shapes;
  Packing packing;
  DType dtype = DType::kBF16;
  FlatBuffer buffer;
  bool aligned = true;

  i64 parameter_items() const {
    i64 n = 0;
    for (const PackedParameter& p : buffer.parameters) n += p.items;
    return n;
  }
  i64 last_item() const {
    i64 end = 0;
    for (const PackedParameter& p : buffer.parameters) end = std::max(end, p.end());
    return end;
  }
  bool no_shard() const { return packing.engine == Engine::kV1 && packing.strategy == Strategy::kNoShard; }
};

// "10x4", "10" or "scalar".
Shape parse_shape(std::string_view text) {
  if (text == "scalar") return {};
  std::vector<i64> dims;
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find('x', at), text.size());
    std::string_view digits = text.substr(at, end - at);
    if (digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      throw Error(Code::kUsage, "a shape is not understood")
          .expected("sizes joined by x, as in 4096x128, or 10, or scalar")
          .found(cat("'", escaped(text), "'"));
    dims.push_back(parse_i64(digits, "SHAPE"));
    at = end + 1;
  }
  return Shape(dims);
}

bool cuts_between_rows(std::span<const Shape> shapes, const Packing& packing) {
  try {
    return row_aligned(pack(shapes, packing));
  } catch (const Error&) {
    return false;  // too large for this many ranks
  }
}

// What to try instead of a packing that cuts a row.
std::string advice(const Layout& l) {
  if (l.no_shard()) return "nothing to do: under no_shard a real run saves every parameter whole";
  if (l.packing.hsdp == 1 && l.shapes.size() <= 1000) {
    Packing other = l.packing;
    for (i64 by = 1; by <= 64; by++)
      for (i64 ranks : {l.packing.ranks + by, l.packing.ranks - by}) {
        other.ranks = ranks;
        if (ranks > 1 && cuts_between_rows(l.shapes, other))
          return cat("--world ", ranks, " cuts between rows; so does --engine v2 for any number of ranks");
      }
  }
  return "--engine v2 cuts between rows for any number of ranks";
}

std::string cut_message(const Layout& l, i64 p, i64 item) {
  const PackedParameter& param = l.buffer.parameters[static_cast<std::size_t>(p)];
  i64 shard = (param.offset + item) / l.buffer.shard_items;
  return cat("the boundary of shards ", shard - 1, " and ", shard, " lies inside row ",
             item / param.row_items, " of parameter ", p, ": item ", item, " is no multiple of ",
             param.row_items);
}

// ---- JSON

void write_ranges(JsonWriter& json, const Layout& l) {
  json.key("item_ranges").begin_array();
  for (i64 p = 0; p < std::ssize(l.shapes); p++) {
    json.begin_array();
    for (i64 r = 0; r < l.packing.ranks; r++) {
      i64 shard = place_of(r, l.packing.ranks, l.packing.hsdp, l.packing.outer).shard;
      ItemRange range = item_range(l.buffer, p, shard);
      json.value(std::vector<i64>{range.begin, range.end});
    }
    json.end_array();
  }
  json.end_array();
}

std::vector<Finding> findings_of(const Layout& l) {
  std::vector<Finding> findings;
  std::string help = l.aligned ? "" : advice(l);
  for (i64 p = 0; p < std::ssize(l.shapes); p++)
    if (std::optional<i64> item = unaligned_cut(l.buffer, p))
      findings.push_back({.code = Code::kRowUnaligned,
                          .tensor = cat("parameter ", p),
                          .message = cut_message(l, p, *item),
                          .help = help});
  return findings;
}

void write_json(Output& out, const Layout& l) {
  const FlatBuffer& b = l.buffer;
  if (l.packing.ranks > kMostRanges / std::ssize(l.shapes))
    throw Error(Code::kBadLayout, "the ranges of so many ranks do not fit one answer")
        .expected(cat("at most ", with_commas(kMostRanges), " ranges"))
        .found(cat(counted(std::ssize(l.shapes), "parameter"), " x ", counted(l.packing.ranks, "rank")))
        .help("without --json, ranks that hold alike are folded");
  AnswerJson json(out);
  json.begin_answer("layout", l.aligned).key("shapes").begin_array();
  for (const Shape& s : l.shapes) json.value(s.dims());
  json.end_array().field("world", l.packing.ranks).field("strategy", strategy_name(l.packing.strategy));
  json.field("engine", engine_name(l.packing.engine)).field("hsdp", l.packing.hsdp);
  json.field("hsdp_outer", l.packing.outer == HsdpOuter::kShard ? "shard" : "replicate");
  json.field("dtype", dtype_name(l.dtype)).field("csf", b.chunk_items).field("order", b.order);
  json.key("offsets").begin_array();
  for (const PackedParameter& p : b.parameters) json.value(p.offset);
  json.end_array().field(l.packing.engine == Engine::kV1 ? "bucket" : "size", b.bucket_items);
  json.field("shard", b.shard_items).field("holes", l.last_item() - l.parameter_items());
  json.field("padding", b.bucket_items - l.last_item());
  write_ranges(json, l);
  json.field("row_aligned", l.aligned).key("findings");
  write_findings(json, findings_of(l));
  json.end_answer();
}

// ---- text

std::string right(std::string_view text, std::size_t width) {
  return cat(std::string(text.size() < width ? width - text.size() : 0, ' '), text);
}

std::string share(i64 part, i64 whole) {
  char text[16];
  std::snprintf(text, sizeof text, "%.1f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
  return text;
}

// With HSDP, ranks and shards are numbered differently; else shard s is rank s.
std::string shard_label(const Layout& l, i64 s) { return cat(l.packing.hsdp > 1 ? "s" : "r", s); }

void write_summary(Output& out, const Layout& l) {
  const FlatBuffer& b = l.buffer;
  i64 used = l.parameter_items(), holes = l.last_item() - used, padding = b.bucket_items - l.last_item();
  auto size = [&](i64 items) {
    return cat(right(with_commas(items), 15), " items  ", right(human_bytes(dtype_bytes(l.dtype, items)), 9));
  };
  out.line(cat(out.styled(Style::kBold, cat("Megatron-FSDP ", engine_name(l.packing.engine), ", ",
                                            strategy_name(l.packing.strategy))),
               ", ", counted(l.packing.ranks, "rank"),
               l.packing.hsdp > 1 ? cat(" in ", l.packing.hsdp, " HSDP instances") : ""));
  out.line(
      cat("parameters ", size(used), "  ", with_commas(std::ssize(l.shapes)), " of ", dtype_name(l.dtype)));
  out.line(cat("bucket     ", size(b.bucket_items), "  holes ", with_commas(holes), " (",
               share(holes, b.bucket_items), "), padding ", with_commas(padding), " (",
               share(padding, b.bucket_items), ")"));
  out.line(cat("shard      ", size(b.shard_items), "  ", with_commas(b.shards),
               l.no_shard() ? " of them, virtual: every rank holds the whole bucket" : " of them"));
  out.line(cat("chunk size ", right(with_commas(b.chunk_items), 15), " items\n"));
}

// "r0 [0, 16)  r1-r6 16 each  r7 [112, 120)": the shards in the middle all hold their full size.
std::string range_text(const Layout& l, i64 p) {
  const FlatBuffer& b = l.buffer;
  const PackedParameter& param = b.parameters[static_cast<std::size_t>(p)];
  if (b.shard_items == 0) return "-";
  i64 first = std::min(param.offset / b.shard_items, b.shards);
  i64 last = std::min((param.end() - 1) / b.shard_items, b.shards - 1);
  std::string out;
  for (i64 s = first; s <= last; s++) {
    if (!out.empty()) out += "  ";
    if (s == first + 1 && last - s >= 3) {
      out += cat(shard_label(l, s), "-", shard_label(l, last - 1), " ", b.shard_items, " each");
      s = last - 1;
      continue;
    }
    ItemRange r = item_range(b, p, s);
    out += cat(shard_label(l, s), " [", r.begin, ", ", r.end, ")");
  }
  return out.empty() ? "-" : out;
}

void write_table(Output& out, const Layout& l) {
  std::vector<std::size_t> by_offset(l.shapes.size());
  std::iota(by_offset.begin(), by_offset.end(), 0);
  std::sort(by_offset.begin(), by_offset.end(), [&](std::size_t x, std::size_t y) {
    return l.buffer.parameters[x].offset < l.buffer.parameters[y].offset;
  });
  using enum Align;
  TextTable table({{"", kLeft},
                   {"#", kRight},
                   {"shape", kLeft},
                   {"offset", kRight},
                   {"rows", kRight},
                   {cat("items of each ", l.packing.hsdp > 1 ? "shard" : "rank"), kLeft}});
  for (std::size_t p : by_offset) {
    const PackedParameter& param = l.buffer.parameters[p];
    i64 id = static_cast<i64>(p);
    table.row({std::string(1, parameter_letter(id)), cat(id), to_string(l.shapes[p]),
               with_commas(param.offset), with_commas(param.items / param.row_items), range_text(l, id)});
  }
  table.write(out);
  out.write("\n");
}

void write_picture(Output& out, const Layout& l) {
  PictureStyle style{out.unicode(), std::min(out.width(), 80), [&](i64 s) { return shard_label(l, s); }};
  for (const std::string& line : buffer_picture(l.buffer, style)) out.line(line);
  if (l.packing.hsdp == 1) return;
  std::string ranks;
  constexpr i64 kMost = 16;
  for (i64 r = 0; r < std::min(l.packing.ranks, kMost); r++)
    ranks += cat("  r", r, " s", place_of(r, l.packing.ranks, l.packing.hsdp, l.packing.outer).shard);
  out.line(cat("\nrank and shard:", ranks, l.packing.ranks > kMost ? "  ..." : ""));
}

void write_verdict(Output& out, const Layout& l) {
  if (l.aligned) return;
  out.write("\n");
  i64 shown = 0, cut = 0;
  for (i64 p = 0; p < std::ssize(l.shapes); p++)
    if (std::optional<i64> item = unaligned_cut(l.buffer, p); item && ++cut && shown < 5) {
      out.line(cat(out.styled(Style::kRed, code_name(Code::kRowUnaligned)), ": ", cut_message(l, p, *item)));
      shown++;
    }
  if (cut > shown) out.line(cat("and ", cut - shown, " more parameters"));
  if (!l.no_shard())
    out.line("A real run fails when it builds the DTensor, and no checkpoint can hold such a shard.");
  out.line(cat(out.styled(Style::kGreen, "help"), ": ", advice(l)));
}

}  // namespace

Exit layout_command(CommandLine& line) {
  std::vector<std::string> shapes;
  std::string strategy = "optim_grads_params", engine = "v1", outer = "replicate", dtype = "bf16";
  Layout l;
  line.positional("SHAPE", shapes, "TP-local shapes in order of registration, such as 4096x128, 10 or scalar")
      .required();
  line.option("--world", l.packing.ranks, "ranks that share the bucket; default 1");
  line.option("--strategy|--data-parallel-sharding-strategy NAME", strategy,
              "no_shard, optim, optim_grads or optim_grads_params (default)")
      .choices({"no_shard", "optim", "optim_grads", "optim_grads_params"});
  line.option("--engine VERSION", engine, "v1 (default) or v2 of Megatron-FSDP").choices({"v1", "v2"});
  line.option("--hsdp|--num-distributed-optimizer-instances", l.packing.hsdp,
              "HSDP instances that the ranks are divided into");
  line.option("--hsdp-outer HOW", outer, "how HSDP instances are related: replicate (default) or shard")
      .choices({"replicate", "shard"});
  line.option("--dtype TYPE", dtype, "data type of the parameters, for sizes in bytes; default bf16");
  line.description(
      "Shows how Megatron-FSDP packs parameters into one buffer. Exit status 1: a shard would cut a row in "
      "two, on which Megatron-FSDP v1 fails.");
  line.example("mckpt layout 10x4 10 --world 4");
  line.example("mckpt layout 4096x4096 4096 6144x4096 4096 28672x4096 4096x14336 --world 16");
  line.example("mckpt layout 2x6 4x5 --world 2 --engine v2 --json");
  line.parse();
  for (const std::string& s : shapes) l.shapes.push_back(parse_shape(s));
  l.packing.strategy = strategy_from_name(strategy);
  l.packing.engine = engine_from_name(engine);
  l.packing.outer = outer == "shard" ? HsdpOuter::kShard : HsdpOuter::kReplicate;
  l.dtype = parse_dtype(dtype, "--dtype");
  l.buffer = pack(l.shapes, l.packing);
  l.aligned = row_aligned(l.buffer);

  Output out(line.flags());
  if (out.json()) {
    write_json(out, l);
  } else {
    write_summary(out, l);
    write_table(out, l);
    write_picture(out, l);
    write_verdict(out, l);
  }
  out.flush();
  return l.aligned ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt

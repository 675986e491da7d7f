// mckpt plot PATH [GLOB] -o FILE: a picture of a checkpoint, or of a planned one: which rank holds what,
// sizes by module, and with --stats what the values are like.
//
//   $ mckpt plot ckpt -o ckpt.html
//   ckpt.html
//
// The picture is the library's (lib/page). Exit status 1: the checkpoint has a problem, which the picture
// shows.
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/parallel.h"
#include "io/file/source_stamps.h"
#include "io/store/store.h"
#include "options/fields.h"
#include "page/data/checkpoint_picture.h"
#include "page/data/fused_picture.h"
#include "page/html/pages.h"
#include "page/picture_file.h"
#include "page/svg/fused_svg.h"
#include "page/svg/shard_map_svg.h"
#include "tools/commands/commands.h"
#include "tools/commands/plot_as.h"
#include "tools/options/base_flag.h"
#include "tools/options/choice.h"
#include "tools/options/command_line.h"
#include "tools/options/field_flags.h"
#include "tools/render/answer_json.h"
#include "tools/render/findings.h"
#include "tools/render/output.h"
#include "tools/run/shown_work.h"

namespace mckpt::impl {
namespace {

void write_answer(Output& out, const CheckpointPicture& p, const std::string& path, const std::string& file,
                  i64 bytes, bool sound) {
  if (!out.json()) return out.line(file);
  AnswerJson json(out);
  json.begin_answer("plot", sound).field("path", path).field("output", file).field("bytes", bytes);
  json.field("tensors", p.map.tensors)
      .field("faulty_tensors", p.map.faulty_tensors)
      .field("planned", p.planned);
  json.end_answer();
}

// The pictures of a plan that are not a checkpoint's.
std::string special_drawing(const CommandLine& line, const PlotAs& as, const std::string& path,
                            const TensorChoice& choice, const std::string& file, PictureForm form) {
  if (as.memory()) {
    if (form != PictureForm::kSvg)
      throw Error(Code::kUsage, "--memory is for an SVG drawing").found(escaped(file, 4096));
    if (!choice.all()) throw Error(Code::kUsage, "--memory is of the whole model: it takes no GLOB");
    return as.memory_drawing(line, path);
  }
  if (form == PictureForm::kHtml)
    throw Error(Code::kUsage, "--parts is for an SVG drawing or a text").found(escaped(file, 4096));
  const FusedPicture picture = as.parts_picture(line, path, choice);
  constexpr i64 kTextColumns = 120;
  return form == PictureForm::kSvg ? fused_svg(picture)
                                   : cat(picture_mark(), fused_text(picture, kTextColumns));
}

Exit draw_special(const CommandLine& line, const PlotAs& as, const std::string& path,
                  const TensorChoice& choice, const std::string& file, PictureForm form) {
  const std::string text = special_drawing(line, as, path, choice, file, form);
  write_picture(file, text);
  Output out(line.flags());
  if (out.json()) {
    AnswerJson json(out);
    json.begin_answer("plot", true)
        .field("path", path)
        .field("output", file)
        .field("bytes", std::ssize(text));
    json.null_field("tensors").null_field("faulty_tensors").field("planned", true);
    json.end_answer();
  } else {
    out.line(file);
  }
  out.flush();
  return Exit::kOk;
}

}  // namespace

Exit plot_command(CommandLine& line) {
  ChosenPaths chosen;
  std::string file;
  mckpt::PlotOptions options;
  options.threads = default_threads();
  chosen.declare(line, "one checkpoint, a file or folder");
  line.option(
          "-o,--output FILE", file,
          "the file to write: a page for any browser if its name ends in .html, a drawing of the shard map if in .svg")
      .required()
      .common();
  FieldFlags declared(line);
  fields(options, declared);
  PlotAs as;
  as.declare(line);
  line.description(
      "Draws a checkpoint of any format, also a damaged one: which rank or file holds which items of every tensor, with holes and overlaps, and the sizes of modules. Headers alone are read, unless --stats is given. The page is one file without a network; an earlier picture of the name is replaced.");
  line.example("mckpt plot ckpt -o ckpt.html");
  line.example("mckpt plot model.safetensors '*.mlp.*' --stats -o mlp.html");
  line.example("mckpt plot Qwen3-30B-A3B --as fsdp --tp 2 --ep 4 --dp 8 -o plan.svg");
  line.example("mckpt plot Qwen3-30B-A3B '*.0.*fc1.weight0' --as fsdp --parts -o parts.svg");
  line.parse();
  as.refuse_options_of_another(line);
  chosen.settle();
  const std::string& path = chosen.only("plot");
  const bool stats = options.stats;
  settle_base(line, options.files, {&path, 1});
  const PictureForm form = picture_form(file);
  if (stats && form == PictureForm::kSvg)
    throw Error(Code::kUsage, "--stats is for an HTML page").found(escaped(file, 4096));
  if (stats && as.chosen()) throw Error(Code::kUsage, "--stats reads values, and a plan has none");
  check_picture_path(file);
  if (as.memory() && as.parts()) throw Error(Code::kUsage, "--memory and --parts are two pictures");
  if (as.memory() || as.parts()) return draw_special(line, as, path, chosen.choice, file, form);
  checkpoint_picture_form(file);

  const GlobalFlags& flags = line.flags();
  const std::unique_ptr<Store> store =
      as.chosen() ? as.plan(line, path, options.threads) : open_store(path, line.opening());
  CheckpointPicture picture = checkpoint_picture(*store, chosen.choose(*store), path);
  picture.planned = as.chosen(), picture.choice = chosen.choice.pattern;
  if (stats) {
    const std::unique_ptr<Store> values = open_values(path, line.opening());
    ShownWork work(flags);
    add_values(picture, *values, chosen.choose(*values), options.threads, work);
  }
  check_unchanged(line.opening());
  const std::string text = form == PictureForm::kHtml ? checkpoint_page(picture) : shard_map_svg(picture);
  write_picture(file, text);
  const bool sound = is_sound(*store) && picture.map.faulty_tensors == 0;
  Output out(flags);
  write_answer(out, picture, path, file, std::ssize(text), sound);
  out.flush();
  report_findings(flags, *store);
  return sound ? Exit::kOk : Exit::kNo;
}

}  // namespace mckpt::impl

// The file of a picture: its ending says what it is, and it is there only when it is whole.
//
//   layout.html   one page that a browser opens, without a network       layout.svg   a drawing
//   parts.txt     a drawing in letters, of the parts of a parameter alone
#pragma once

#include <string>
#include <string_view>

namespace mckpt::impl {

enum class PictureForm { kHtml, kSvg, kText };

// Throws kUsage for any other ending.
PictureForm picture_form(const std::string& path);

// As picture_form(), for a picture of a whole checkpoint: throws kUsage for kText too.
PictureForm checkpoint_picture_form(const std::string& path);

// A comment that begins every picture, behind the line that says what kind of file it is: it
// distinguishes an earlier picture from any other file.
std::string picture_mark();

// Throws what would keep the file from being written, before the work that it shows: kWriteFailed, and
// kOutputExists where the name belongs to anything but an earlier picture, which is replaced.
void check_picture_path(const std::string& path);

// Throws as check_picture_path() for the page of a difference, whose path is the setting `html`.
void check_page_path(const std::string& path);

// Writes the file beside its place and renames it. Throws kWriteFailed.
void write_picture(const std::string& path, std::string_view text);

}  // namespace mckpt::impl

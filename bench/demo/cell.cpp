#include <bench/demo/cell.hpp>

#include <nlohmann/json.hpp>

#include <array>

namespace mallard::demo {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(answer, read, made, found, checksum)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(profile, allocations, frees, bytes_total, bytes_in_use,
                                   bytes_at_peak)

std::span<const workload_entry> workloads()
{
    static const std::array all = {word_index_entry(), parse_tree_entry(), phrase_window_entry()};
    return all;
}

std::string to_line(const measurement& m)
{
    nlohmann::json line = {
        {"build", m.build},
        {"use", m.use},
        {"destroy", m.destroy},
        {"peak_rss_kib", m.peak_rss_kib},
        {"after_rss_kib", m.after_rss_kib},
        {"answer", m.says},
    };
    if (m.counts)
        line["profile"] = *m.counts;
    return line.dump();
}

measurement from_line(const std::string& text)
{
    auto const line = nlohmann::json::parse(text);
    measurement m;
    line.at("build").get_to(m.build);
    line.at("use").get_to(m.use);
    line.at("destroy").get_to(m.destroy);
    line.at("peak_rss_kib").get_to(m.peak_rss_kib);
    line.at("after_rss_kib").get_to(m.after_rss_kib);
    line.at("answer").get_to(m.says);
    if (line.contains("profile"))
        m.counts = line.at("profile").get<profile>();
    return m;
}

} // namespace mallard::demo

# Completes murald's commands in fish. `murald complete` prints the words.
# Goes to /usr/share/fish/vendor_completions.d/murald.fish.

function __murald_complete
    # Quotes of the last word are removed, also one that is still open.
    set -l last (commandline -ct | string replace -r "^[\"']" '' | string unescape)
    set -l line (commandline -opc) "$last"
    set -l found ($line[1] complete -- $line[2..-1] 2>/dev/null)
    if string match -q ':files*' -- $found
        string match -v ':files*' -- $found
        __fish_complete_path (commandline -ct)
        return
    end
    switch "$found[1]"
        case ':directories*'
            __fish_complete_directories (commandline -ct)
        case '*'
            printf '%s\n' $found
    end
end

complete -c murald -f -a '(__murald_complete)'

#!/bin/sh
# Print the interpreter of a Python version, such as 3.12: on the path, or of pyenv.
version=$1
for python in "python$version" "$HOME"/.pyenv/versions/"$version".*/bin/python; do
	if "$python" -c "import sys; sys.exit(sys.version.split('.')[:2] != '$version'.split('.'))" 2>/dev/null; then
		echo "$python"
		exit 0
	fi
done
echo "Python $version is needed, and was not found" >&2
exit 1
